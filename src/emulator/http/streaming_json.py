"""Streaming JSON: objects with one member too large for memory."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import msgspec

from emulator.core.errors import ServiceError
from emulator.core.wire import json_codec
from emulator.core.wire.refusals import malformed_json, missing_member, too_long, wrong_shape

PIECE_SIZE = 32 * 1024
"""Bytes parsed before other requests run."""
_MAX_SMALL = 64 * 1024
"""Bytes of all other members together, and of one token."""
_MAX_WRAPPED = 4 * 1024 * 1024
"""Bytes of a body wrapped in a JSON string (ruling W2)."""
_WHITE_SPACE = b" \t\r\n"
_JSON_START = b'{["-0123456789tfn'
"""How JSON begins; so does an empty text."""
_ITEM = rb'(?:"[^"\\]*+(?:\\.[^"\\]*+)*+"|[^ \t\r\n"\[\]{}:,]++(?=.))'
"""A text, number or word. The next piece may continue a number or word at the end."""
_TOKEN = re.compile(rb"[ \t\r\n]*+(%b|[\[\]{}:,])" % _ITEM, re.DOTALL)
_MORE_ITEMS = re.compile(rb"(?>(?:[ \t\r\n]*+,[ \t\r\n]*+%b)+)" % _ITEM, re.DOTALL)
"""Items after the first of an array, each with its comma. Not `(?:…)++`: Python before 3.11.5 matches that wrongly."""


StringRun = tuple[int, int, list[Any]]
"""Consecutive strings of the member that is too large for memory: the index of their array, which is 0 with one level,
the index of the first in its array, and the strings, or something else for an item that is not a string."""


class LongMemberReader:
    """Reads `{"<long>": [[…], …], …}` with two levels, `{"<long>": […], …}` with one.

    The items of each array, but its first, are cut out of the body while it arrives. What is left is short, and decoded
    at the end.
    """

    def __init__(self, long: str, *, levels: int, longest: int) -> None:
        self.small: dict[str, Any] = {}
        """The other members; complete at the end."""
        self.arrays = 0
        """The number of arrays so far."""
        self._long = long
        self._levels = levels
        self._longest = longest
        """Characters of a string."""
        self._left = bytearray()
        """The tokens that were not cut out."""
        self._rest = b""
        """The beginning of a token that the next piece completes, with the comma before it."""
        self._token = b""
        """The latest token."""
        self._depth = 0
        self._at = 0
        """The index of the next item in its array."""
        self._is_long = False
        """Whether the long member is being read."""
        self._is_item = False
        """Whether the latest token is an item of the long member."""

    async def read(self, chunks: AsyncIterator[bytes], restart: Callable[[], None]) -> AsyncIterator[StringRun]:
        """Yield all strings of the long member. If the member is repeated, calls `restart` and starts again.

        Raises `BadRequest` if the body is malformed.
        """
        async for piece in _split_pieces(chunks):
            for strings in self._read_piece(piece, restart):
                yield strings
            await asyncio.sleep(0)
        self.small = json_codec.decode(bytes(self._left) + self._rest, dict[str, Any])
        if self._long not in self.small:
            raise missing_member(self._long)
        del self.small[self._long]

    def _read_piece(self, piece: bytes, restart: Callable[[], None]) -> Iterator[StringRun]:
        data, at = self._rest + piece, 0
        while True:
            if self._is_item and (more := _MORE_ITEMS.match(data, at)):
                at = more.end()
                yield self._decode_run(more[0].lstrip(_WHITE_SPACE)[1:])
            found = _TOKEN.match(data, at)
            if found is None or (found[1] == b"," and _TOKEN.match(data, found.end()) is None):
                break
            at, token = found.end(), found[1]
            self._left += token + b" "  # the space keeps tokens apart that must not be joined
            self._follow_token(token, restart)
            if self._is_item:
                yield self._decode_run(token)
        self._rest = data[at:].lstrip(_WHITE_SPACE)
        self._check_sizes()

    def _decode_run(self, items: bytes) -> StringRun:
        """Return the items with these texts, between commas."""
        found, at = _decode_json(b"[" + items + b"]"), self._at
        self._at += len(found)
        return max(self.arrays - 1, 0), at, found

    def _follow_token(self, token: bytes, restart: Callable[[], None]) -> None:
        """Follow the structure of the body. Raises `BadRequest` if the long member has another shape."""
        before, self._token, self._is_item = self._token, token, False
        if token == b":" and self._depth == 1:
            self._is_long = _decode_json(before) == self._long
        elif token == b"]" or token == b"}":
            self._depth -= 1
            self._is_long = self._is_long and self._depth > 1
        elif token == b"[" or token == b"{":
            self._depth += 1
            if self._is_long:
                self._begin_array(token, restart)
        elif self._is_long and token not in b",:":
            if self._depth <= self._levels:
                raise self._wrong_value()
            self._is_item = True

    def _begin_array(self, token: bytes, restart: Callable[[], None]) -> None:
        """Begin the long member, or an array of it."""
        if token == b"{" or self._depth > self._levels + 1:
            raise self._wrong_value()
        if self._depth == 2:
            self.arrays = 0
            restart()
        else:
            self.arrays += 1
        self._at = 0

    def _check_sizes(self) -> None:
        """Refuse a token that has not ended and is already too long, and too much besides the long member."""
        is_in_array = self._is_long and self._depth > self._levels
        if is_in_array and len(self._rest) > PIECE_SIZE:
            field = f"{self._array_name}[{self._at}]"
            if self._rest.lstrip(_WHITE_SPACE + b",").startswith(b'"'):
                raise too_long(field, unit="characters", limit=self._longest)
            raise wrong_shape(field=field, needed="a string")
        if len(self._left) + (0 if is_in_array else len(self._rest)) > _MAX_SMALL:
            raise too_long(f"the body without `{self._long}`", unit="bytes", limit=_MAX_SMALL)

    @property
    def _array_name(self) -> str:
        return f"{self._long}[{self.arrays - 1}]" if self.arrays and self._levels == 2 else self._long

    def _wrong_value(self) -> ServiceError:
        expected = "an array of arrays of strings" if self._levels == 2 else "an array of strings"
        return wrong_shape(
            field=self._array_name,
            problem=f"must be {expected}; found another value at index {self._at}",
            held=f"another value at index {self._at}",
            needed=expected,
        )


def _decode_json(text: bytes) -> Any:
    try:
        return msgspec.json.decode(text)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise malformed_json(json_codec.decode_problem(error, text)) from None


async def _split_pieces(chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Yield the body in pieces of `PIECE_SIZE` bytes, the last one shorter. Unwraps a JSON string (ruling W2)."""
    data = bytearray()
    async for chunk in _unwrap_string(chunks):
        data += chunk
        whole = len(data) - len(data) % PIECE_SIZE
        for start in range(0, whole, PIECE_SIZE):
            yield bytes(data[start : start + PIECE_SIZE])
        del data[:whole]
    yield bytes(data)


async def _unwrap_string(chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    first = b""
    async for chunk in chunks:
        first = chunk.lstrip(_WHITE_SPACE)
        if first:
            break
    if problem := json_codec.encoding_problem(first) or (first[:1] not in _JSON_START and "invalid character (byte 0)"):
        raise malformed_json(problem)
    if first.startswith(b'"'):
        async for chunk in chunks:
            first += chunk
            if len(first) > _MAX_WRAPPED:
                raise too_long("a body inside a JSON string", unit="bytes", limit=_MAX_WRAPPED)
        first = json_codec.decode(first, str).encode()
    yield first
    async for chunk in chunks:
        yield chunk
