"""Paths, bodies and responses on the wire (rulings W1, W2, W3, W7)."""

from __future__ import annotations

import pytest


def test_a_character_beyond_unicode_and_a_number_out_of_range_get_400(viewer):
    # A character beyond unicode gets 400
    for text in [b'{"key":"\xf4\x90\x80\x80"}', b'"{\\"key\\":\\"\xf4\x90\x80\x80\\"}"']:
        for path in ["rank", "viewer_state"]:
            answer = viewer().post(path, content=text)

            assert (400, "Malformed json body") == (answer.status_code, answer.json()["reason"])

    # A number out of range is not malformed JSON
    for path in ["viewer_state", "accumulate"]:
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
