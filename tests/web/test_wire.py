"""Paths, bodies and responses on the wire (rulings W1, W2, W3, W7)."""

from __future__ import annotations

import pytest


@pytest.mark.parametrize("text", [b'{"key":"\xf4\x90\x80\x80"}', b'"{\\"key\\":\\"\xf4\x90\x80\x80\\"}"'])
@pytest.mark.parametrize("path", ["rank", "viewer_state"])
def test_a_character_beyond_unicode_gets_400(viewer, path: str, text: bytes):
    answer = viewer().post(path, content=text)

    assert (400, "Malformed json body") == (answer.status_code, answer.json()["reason"])


@pytest.mark.parametrize("path", ["viewer_state", "accumulate"])
def test_a_number_out_of_range_is_not_malformed_json(viewer, path: str):
    answer = viewer().post(path, content=b'{"a": 1e999}')

    assert (400, "Invalid body") == (answer.status_code, answer.json()["reason"])
    assert "[...]: number out of range" == answer.json()["info"]


@pytest.mark.parametrize(
    ("text", "stored"),
    [("1.0", "1.0"), ("-0.0", "-0.0"), ("1e22", "1e22"), ("18446744073709551616", "18446744073709551616"),
     ("-170141183460469231731687303715884105729", "-170141183460469231731687303715884105729"),
     ('"\\u00e9\\ud83c\\udfb2"', '"é🎲"'), ('"\\/"', '"/"'), ("[ 1 , 2 ]", "[1,2]")],
)  # fmt: skip
def test_json_values_are_stored_unchanged(viewer, text: str, stored: str):
    client = viewer("5551")

    client.post("viewer_state", content=f'{{"a": {text}}}').raise_for_status()
    client.patch("viewer_state", json=[{"op": "add", "path": "/b", "value": 1}]).raise_for_status()

    assert f'{{"a":{stored},"b":1}}' == client.get("viewer_state").text
