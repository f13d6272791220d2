"""Streaming JSON: any body in any chunks gives what a whole decoder gives."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterable
from itertools import pairwise
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from emulator.core.errors import BadRequest
from emulator.http.streaming_json import PIECE_SIZE, LongMemberReader
from support.examples import examples

LONGEST = 63
TEXTS = st.text(st.characters(codec="utf-8"), max_size=8)
VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-5, 5), st.floats(allow_nan=False, allow_infinity=False), TEXTS),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(TEXTS, inner, max_size=3)),
    max_leaves=5,
)
ARRAYS = st.lists(st.lists(TEXTS, max_size=6), max_size=4)


def read(chunks: Iterable[bytes], *, levels: int = 2) -> tuple[Any, dict[str, Any]]:
    """Return the strings of the member `codes` and the other members."""
    reader, arrays = LongMemberReader("codes", levels=levels, longest=LONGEST), dict[int, list[Any]]()

    async def source() -> AsyncIterator[bytes]:
        for chunk in chunks:
            yield chunk

    async def work() -> None:
        async for array, at, strings in reader.read(source(), arrays.clear):
            found = arrays.setdefault(array, [])
            assert len(found) == at
            found += strings

    asyncio.run(work())
    if levels == 1:
        return arrays.get(0, []), reader.small
    return [arrays.get(number, []) for number in range(reader.arrays)], reader.small


def chunked(body: bytes, cuts: list[int]) -> list[bytes]:
    """Cut a body into chunks; some may be empty."""
    ends = [0, *sorted(cut % (len(body) + 1) for cut in cuts), len(body)]
    return [body[start:end] for start, end in pairwise(ends)]


@settings(deadline=None, max_examples=examples(60))
@given(
    st.dictionaries(TEXTS, VALUES, max_size=3),
    ARRAYS,
    st.sampled_from([None, 1]),
    st.booleans(),
    st.lists(st.integers(0, 10_000), max_size=6),
)
def test_any_body_in_any_chunks_is_read(
    small: dict[str, Any], codes: list[list[str]], indent: int | None, is_ascii: bool, cuts: list[int]
):
    body = json.dumps(small | {"codes": codes}, indent=indent, ensure_ascii=is_ascii).encode()

    assert (codes, {name: value for name, value in small.items() if name != "codes"}) == read(chunked(body, cuts))


@settings(deadline=None, max_examples=examples(120))
@given(ARRAYS, st.integers(0, 200), st.binary(max_size=3), st.integers(0, 3), st.lists(st.integers(0, 300), max_size=3))
def test_a_damaged_body_is_read_only_if_it_is_still_valid(
    codes: list[list[str]], at: int, inserted: bytes, cut: int, cuts: list[int]
):
    body = json.dumps({"x": [1, {"y": "z"}], "codes": codes}).encode()
    body = body[:at] + inserted + body[at + cut :]
    try:
        expected = msgspec.json.decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        expected = None

    try:
        found, small = read(chunked(body, cuts))
    except BadRequest:
        is_valid = isinstance(expected, dict) and isinstance(expected.get("codes"), list)
        assert not is_valid or not all(
            isinstance(each, list) and not any(isinstance(item, list | dict) for item in each)
            for each in expected["codes"]
        )
    else:
        assert expected == small | {"codes": found}


def test_many_strings_are_read_in_order():
    codes = [[f"{array}-{number:06}" for number in range(20_000)] for array in range(3)]
    body = json.dumps({"codes": codes, "names": ["A"]}).encode()

    assert (codes, {"names": ["A"]}) == read([body])
    assert (codes[0], {}) == read([json.dumps({"codes": codes[0]}).encode()], levels=1)


@pytest.mark.parametrize(
    ("start", "error"),
    [
        (b'{"codes":[["a","', "codes[0][1]: has more than 63 characters"),
        (b'{"codes":[["a"],["b","c", "', "codes[1][2]: has more than 63 characters"),
        (b'{"codes":[["a"],["b","c\\n", "', "codes[1][2]: has more than 63 characters"),
        (b'{"codes":[["a", 1', "codes[0][1]: must be a string"),
        (b'{"codes":[[],[', "codes[1][0]: must be a string"),
        (b'{"codes":[["a"]],"x":"', "the body without `codes`: has more than 65536 bytes"),
        (b'{"', "the body without `codes`: has more than 65536 bytes"),
    ],
)
def test_a_token_is_refused_as_soon_as_it_is_too_long(start: bytes, error: str):
    sent = []

    def chunks() -> Iterable[bytes]:
        yield start
        for _ in range(1_000):
            sent.append(1)
            yield b"1" * PIECE_SIZE

    with pytest.raises(BadRequest) as raised:
        read(chunks())

    assert error in raised.value.details
    assert len(sent) <= 4


def test_a_code_of_the_most_bytes_is_not_refused_early():
    code = "🎁" * LONGEST
    body = json.dumps({"codes": [[code]]}).encode()

    assert 12 * LONGEST < len(body)
    assert ([[code]], {}) == read([body[at : at + 1] for at in range(len(body))])


def test_other_members_may_have_64_kib_together():
    inside = json.dumps({"x": ["y" * 100] * 600, "codes": [["a"]]}).encode()
    outside = json.dumps({f"x{number}": "y" * 100 for number in range(700)} | {"codes": []}).encode()

    assert ([["a"]], {"x": ["y" * 100] * 600}) == read([inside])
    with pytest.raises(BadRequest, match="65536"):
        read([outside])
