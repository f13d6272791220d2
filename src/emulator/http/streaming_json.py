"""Streaming JSON: objects with one member too large for memory. Other requests run after each piece of about 1 ms."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Generator, Iterator
from typing import Any, Final, NamedTuple

import msgspec

from emulator.errors import ServiceError
from emulator.wire import json_codec
from emulator.wire.refusals import (
    malformed_json,
    missing_member,
    too_long,
    wrong_shape,
)

PIECE: Final = 32 * 1024
"""Bytes parsed before other requests run."""
_MAX_SMALL: Final = 64 * 1024
"""Bytes of all other members together, and of each name."""
_MAX_WRAPPED: Final = 4 * 1024 * 1024
"""Bytes of a body wrapped in a JSON string (ruling W2)."""
_BYTES_PER_CHARACTER: Final = 12
"""The most that one character may take: as an escaped surrogate pair."""
_TOKEN: Final = re.compile(
    rb'[ \t\r\n]*+(?:("(?:[^"\\]++|\\.)*+"|[\[\]{}:,])|([^ \t\r\n"\[\]{}:,]++))', re.DOTALL
)  # a complete token, or a number or word that the next piece may continue
_SPACE: Final = b" \t\r\n"
_BULK: Final = b""
"""Stands for the strings that `StreamReader` decoded without looking at each token."""

_strings = msgspec.json.Decoder(list[str])
_INVALID = (msgspec.MsgspecError, ValueError, RecursionError)
_Grammar = Generator[None, bytes, None]


class Strings(NamedTuple):
    """Consecutive strings of the member that is too large for memory."""

    array: int
    """The index of their array; 0 with one level."""
    at: int
    """The index of the first string in its array."""
    items: list[Any]
    """The strings; something else for an item that is not a string."""


class StreamReader:
    """Reads `{"<long>": [[…], …], …}` with two levels, `{"<long>": […], …}` with one.

    A string of the long member is refused while it arrives if it must have more than `longest` characters.
    """

    def __init__(self, long: str, *, levels: int, longest: int) -> None:
        self.small: dict[str, Any] = {}
        """The other members; complete at the end."""
        self.arrays = 0
        """The number of arrays so far."""
        self.restarts = 0
        """The number of times the long member was repeated; the last one wins."""
        self._long = long
        self._levels = levels
        self._longest = longest
        self._at = 0
        """The index of the next item in its array."""
        self._items: list[bytes] = []
        """Items of the array that were read and not decoded."""
        self._takes_item = False
        """Whether the next token is an item of the long member."""
        self._is_long_found = False
        self._is_complete = False
        self._small_size = 0
        self._rest = b""
        """The beginning of a token that the next piece completes."""
        self._grammar = self._body()
        next(self._grammar)

    async def read(self, chunks: AsyncIterator[bytes], restart: Callable[[], None]) -> AsyncIterator[Strings]:
        """Yield all strings of the long member. If the member is repeated, calls `restart` and starts again.

        Raises `BadRequest` if the body is malformed.
        """
        restarts = 0
        async for piece in _pieces(chunks):
            for strings in self._feed_piece(piece):
                if self.restarts != restarts:
                    restarts = self.restarts
                    restart()
                yield strings
            await asyncio.sleep(0)
        if self.restarts != restarts:
            restart()
        if not self._is_complete or self._rest:
            raise malformed_json("it is incomplete")
        if not self._is_long_found:
            raise missing_member(self._long)

    def _feed_piece(self, piece: bytes) -> Iterator[Strings]:
        data, at, is_bulk_tried = self._rest + piece, 0, False
        while True:
            if self._takes_item and not self._items and not is_bulk_tried:
                is_bulk_tried = True
                at, strings = _leading_strings(data, at)
                if strings:
                    yield self._consecutive(strings)
                    self._grammar.send(_BULK)
            found = _TOKEN.match(data, at)
            if found is None or (found[2] and found.end() == len(data)):
                break
            at = found.end()
            self._grammar.send(found[1] or found[2])
            if self._items and found[1] == b"]":
                yield self._decoded_items()
        if self._items:
            yield self._decoded_items()
        self._rest = data[at:].lstrip(_SPACE)
        self._check_rest()

    def _decoded_items(self) -> Strings:
        items, self._items = self._items, []
        return self._consecutive(_decode_token(b"[" + b",".join(items) + b"]"))

    def _consecutive(self, items: list[Any]) -> Strings:
        at, self._at = self._at, self._at + len(items)
        return Strings(max(self.arrays - 1, 0), at, items)

    def _check_rest(self) -> None:
        """Refuse a token that has not ended and is already too long."""
        if self._takes_item and len(self._rest) > self._longest * _BYTES_PER_CHARACTER + 2:
            field = f"{self._place_of_error()}[{self._at}]"
            if self._rest.startswith(b'"'):
                raise too_long(field, unit="characters", limit=self._longest)
            raise wrong_shape(field=field, needed="a string")
        if len(self._rest) > _MAX_SMALL:
            raise self._too_much()

    def _body(self) -> _Grammar:
        """Parse the tokens of the body, which each `yield` receives.

        Raises `BadRequest` for a token in the wrong place.
        """
        if (yield) != b"{":
            raise wrong_shape(problem="expected an object", needed="an object")
        token = yield
        while token != b"}":
            if not token.startswith(b'"'):
                raise malformed_json("a name is missing")
            self._count_small(token)
            name = _decode_token(token)
            if (yield) != b":":
                raise malformed_json("a colon is missing")
            if name == self._long:
                yield from self._long_member()
            else:
                self.small[name] = yield from self._small_member()
            token = yield from _after_item(b"}")
        self._is_complete = True
        yield
        raise malformed_json("it has text after its end")

    def _long_member(self) -> _Grammar:
        self.restarts += self._is_long_found
        self._is_long_found = True
        self.arrays = self._at = 0
        if (yield) != b"[":
            raise self._unexpected()
        if self._levels == 1:
            yield from self._array()
            return
        token = yield
        while token != b"]":
            if token != b"[":
                raise self._unexpected()
            self.arrays += 1
            self._at = 0
            yield from self._array()
            token = yield from _after_item(b"]")

    def _array(self) -> _Grammar:
        """Parse the items of an array of strings."""
        self._takes_item = True
        token = yield
        while token != b"]":
            if token in (b"[", b"{"):
                raise self._unexpected()
            if token is not _BULK:
                self._items.append(token)
            self._takes_item = False
            token = yield
            if token == b",":
                self._takes_item = True
                token = yield
                if token == b"]":
                    raise malformed_json("it has a comma too many")
            elif token != b"]":
                raise malformed_json("a comma is missing")
        self._takes_item = False

    def _small_member(self) -> Generator[None, bytes, Any]:
        text, depth = bytearray(), 0
        while True:
            token = yield
            text += token + b" "  # the space keeps tokens apart that must not be joined
            self._count_small(token)
            depth += (token in (b"[", b"{")) - (token in (b"]", b"}"))
            if depth <= 0:
                return _decode_token(bytes(text))

    def _place_of_error(self) -> str:
        return f"{self._long}[{self.arrays - 1}]" if self.arrays and self._levels == 2 else self._long

    def _unexpected(self) -> ServiceError:
        expected = "an array of arrays of strings" if self._levels == 2 else "an array of strings"
        at = self._at + len(self._items)
        return wrong_shape(
            field=self._place_of_error(),
            problem=f"must be {expected}; found another value at index {at}",
            held=f"another value at index {at}",
            needed=expected,
        )

    def _count_small(self, token: bytes) -> None:
        self._small_size += len(token) + 1
        if self._small_size > _MAX_SMALL:
            raise self._too_much()

    def _too_much(self) -> ServiceError:
        return too_long(f"the body besides `{self._long}`", unit="bytes", limit=_MAX_SMALL)


def _leading_strings(data: bytes, at: int) -> tuple[int, list[str]]:
    """Decode the strings of an array from `at` on at once; return where they end.

    Returns no strings if some have escapes, or if other values or the end of the array come before the last string.
    """
    if data.find(b"\\", at) >= 0:
        return at, []
    end = data.rfind(b'"', at) + 1
    if data.count(b'"', at, end) % 2:  # the last string is incomplete
        end = data.rfind(b'"', at, end - 1) + 1
    if end <= at:
        return at, []
    try:
        return end, _strings.decode(b"[" + data[at:end] + b"]")
    except _INVALID:
        return at, []


def _after_item(end: bytes) -> Generator[None, bytes, bytes]:
    """Read the token after an item.

    If it is a comma, return the next token; otherwise it must be `end`, and is returned.
    """
    token = yield
    if token == end:
        return token
    if token != b",":
        raise malformed_json("a comma is missing")
    token = yield
    if token == end:
        raise malformed_json("it has a comma too many")
    return token


def _decode_token(text: bytes) -> Any:
    try:
        return msgspec.json.decode(text)
    except _INVALID as error:
        raise malformed_json(json_codec.error_text(error)) from None


async def _pieces(chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Yield the body in pieces of `PIECE` bytes, the last one shorter. Unwraps a JSON string (ruling W2)."""
    data = bytearray()
    async for chunk in _unwrapped(chunks):
        data += chunk
        whole = len(data) - len(data) % PIECE
        for start in range(0, whole, PIECE):
            yield bytes(data[start : start + PIECE])
        del data[:whole]
    yield bytes(data)


async def _unwrapped(chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    first = b""
    async for chunk in chunks:
        first = chunk.lstrip(_SPACE)
        if first:
            break
    if first.startswith(b'"'):
        async for chunk in chunks:
            first += chunk
            if len(first) > _MAX_WRAPPED:
                raise too_long("a body inside a JSON string", unit="bytes", limit=_MAX_WRAPPED)
        first = json_codec.decode(first, str).encode()
    yield first
    async for chunk in chunks:
        yield chunk
