"""Parsing of WebSocket requests, and the members of every reply (rulings X2, X3)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from emulator.core.errors import BadRequest
from emulator.realtime.envelope import NO_REQUEST, Request, encode_error, encode_reply, read_request

VALID = {"action": "get", "params": {"request_id": 9, "target": "state"}, "data": {"state_id": "channel"}}


def read(text: str | bytes) -> Request:
    """Return what a message requests."""
    request = Request("")
    read_request(text.encode() if isinstance(text, str) else text, request, max_data=65_536)
    return request


def rejected(text: str) -> Request:
    """Check that a text is rejected with 400; return what could be read of it."""
    request = Request("")
    with pytest.raises(BadRequest) as error:
        read_request(text.encode(), request, max_data=65_536)
    assert 400 == error.value.status
    return request


def meta(text: str) -> dict[str, Any]:
    """The `meta` of the reply to a text."""
    request = Request("")
    try:
        read_request(text.encode(), request, max_data=65_536)
        reply = encode_reply(request, {}, now=7)
    except BadRequest as error:
        reply = encode_error(request, error, now=7)
    return dict(json.loads(reply)["meta"])


@pytest.mark.parametrize("params", [{"target": "state"}, {"target": "state", "x": 1}])
def test_the_request_id_defaults_to_65535(params: object):
    assert NO_REQUEST == read(json.dumps({**VALID, "params": params})).request_id


@pytest.mark.parametrize(
    "text",
    ["", " ", "{", "{this is not json", "nul", "[1,", '"', "{}{}", '{"action":"get",}', "\0", "\ufeff{}", "NaN",
     '{"action":NaN}', "[" * 100_000, '{"a":' * 100_000, '{"action":"\\ud800"}', "é", "\U0001f600"],
)  # fmt: skip
def test_malformed_json_is_rejected_with_65535(text: str):
    assert Request("", "", NO_REQUEST) == rejected(text)


@pytest.mark.parametrize(
    "wrong",
    [
        {"action": 1},
        {"action": None},
        {"action": []},
        {"params": {"request_id": 9, "target": 1}},
        {"params": {"request_id": 9, "target": []}},
        {"data": 1},
        {"data": []},
        {"data": "x"},
    ],
)
def test_a_member_of_the_wrong_type_is_rejected_under_the_request_id(wrong: dict[str, object]):
    assert 9 == rejected(json.dumps({**VALID, **wrong})).request_id


def test_unknown_members_are_ignored_and_the_last_duplicate_wins():
    text = b'{"x":1,"action":"nope","action":"get","params":{"y":[],"request_id":3,"target":"state"},"data":{"z":{}}}'

    assert Request("get", "state", 3, {"z": {}}) == read(text)


@pytest.mark.parametrize("size", [0, 128 * 1024], ids=["small", "large"])
@pytest.mark.parametrize("text", ["[1]", '"x"', "7", "null", "true"])
def test_a_text_that_is_not_an_object_is_refused_as_such_at_any_size(text: str, size: int):
    with pytest.raises(BadRequest) as error:
        read(f"{text}{' ' * size}")

    assert error.value.detail.startswith("a request must be an object")
