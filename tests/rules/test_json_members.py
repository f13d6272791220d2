"""Splitting a JSON object into its members, without decoding their values."""

from __future__ import annotations

import asyncio
import json
import random
from typing import Any

import msgspec
import pytest

from emulator.errors import BadRequest
from emulator.wire.json_members import members_of
from support.examples import spread
from support.random_requests import RequestGenerator


def members(raw: bytes, most: int = 1_000) -> dict[str, Any] | None:
    """The members with decoded values."""
    found = asyncio.run(members_of(raw, most=most))
    return None if found is None else {name: msgspec.json.decode(value) for name, value in found.items()}


OBJECTS = [
    "{}",
    " { } ",
    '{"1":{}}',
    ' {"a" : [1, {"b": "}"}] ,\n"c":"]\\"{,"} ',
    '{"a\\"b{":{"c":"\\\\"},"d":[[],[[]]]}',
    '{"":null,"é":1.5,"\\u00e9x":true}',
    '{"a":1,"a":2}',
    json.dumps('{"in a string":[1]}'),
]


@pytest.mark.parametrize("text", OBJECTS)
def test_an_object_is_split_into_its_members(text: str):
    expected = json.loads(text)

    assert (json.loads(expected) if isinstance(expected, str) else expected) == members(text.encode())


@pytest.mark.parametrize("seed", spread(range(20), 4))
def test_a_random_object_is_split_into_its_members(seed: int):
    generator = RequestGenerator(random.Random(seed))
    for _ in range(100):
        value = {str(name): generator.value() for name in range(5)}
        text = json.dumps(value, ensure_ascii=generator.odds(0.5), indent=generator.one(None, 2))

        assert value == members(text.encode())


@pytest.mark.parametrize("text", ["[]", "[{}]", "3", "null", '"x"', '"[1]"', "", "  "])
def test_other_values_are_not_objects(text: str):
    assert members(text.encode()) is None


MALFORMED = ["{", '{"a":1', '{"a":1}}', '{"a":1} x', '{"a":1,}', "{,}", '{"a"}', '{"a":[}', '{"a":{]}', '{"a":1]', "{]",
             '{"a":"', '{"a":"\\', '{"a":1,,"b":2}', "{a:1}", '{"a":nul}', '{"\\ud800":1}', '{"a" 1}', '"{', '{1:2}',
             '{"a":' + "[" * 100_000 + "]" * 100_000 + "}"]  # fmt: skip


@pytest.mark.parametrize("text", MALFORMED, ids=[text[:30] for text in MALFORMED])
def test_malformed_json_is_refused(text: str):
    with pytest.raises(BadRequest) as error:
        members(text.encode())
    assert "Malformed json body" == error.value.reason


def test_splitting_stops_after_the_first_member_over_the_limit():
    text = b"{" + b",".join(b'"%d":{}' % number for number in range(10)) + b" and anything"

    assert ["0", "1", "2", "3"] == list(members(text, most=3) or ())


COSTLY = {
    "lists": b'{"1":[' + b"[]," * 140_000 + b"0]}",
    "escapes": b'{"1":"' + rb"\"" * 200_000 + b'"}',
    "backslashes": b'{"1":"' + rb"\\" * 200_000 + b'"}',
    "text": b'{"1":"' + b"x" * 400_000 + b'"}',
    "members": b"{" + b",".join(b'"%d":{}' % number for number in range(36_000)) + b"}",
    "unterminated": b'{"1":"' + rb"\"" * 200_000,
    "wrapped": json.dumps('{"1":[' + "[]," * 120_000 + "0]}").encode(),
}


@pytest.mark.parametrize("name", COSTLY)
def test_a_large_object_is_split_in_short_steps(name: str):
    raw, passes = COSTLY[name], 0

    async def count_passes() -> None:
        nonlocal passes
        while True:
            await asyncio.sleep(0)
            passes += 1

    async def split() -> None:
        counting = asyncio.create_task(count_passes())
        try:
            await members_of(raw, most=200_000)
        except BadRequest:
            assert "unterminated" == name
        counting.cancel()

    asyncio.run(split())

    assert passes > len(raw) // (80 * 1024)
