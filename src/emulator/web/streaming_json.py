"""A JSON body too large to hold, read as it comes: one member is long arrays of strings, the others are small.

An incremental parser does the reading. A piece of the body costs a millisecond or two, after which everybody else has
their turn.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any, Final, NamedTuple

import ijson  # type: ignore[import-untyped]

from emulator.errors import BadRequest
from emulator.wire import json_codec

PIECE: Final = 32 * 1024
"""Bytes that are parsed between two turns of others."""
_LARGEST_SMALL: Final = 100_000
"""Parser events in all small members together."""
_LARGEST_WRAPPED: Final = 4 * 1024 * 1024
"""Bytes of a body that is a JSON string and holds the body proper (ruling W2)."""


_STRUCTURE: Final = frozenset({"start_array", "end_array", "start_map", "end_map", "map_key"})
_PAIR: Final = 12
"""Bytes of an escaped pair."""
_LONE_SURROGATE: Final = re.compile(
    rb"\\u[dD][89abAB][0-9a-fA-F]{2}(?!\\u[dD][c-fC-F])|(?<!\\u[dD][89abAB][0-9a-fA-F]{2})\\u[dD][c-fC-F]"
)


class Strings(NamedTuple):
    """Some strings of the long member, in order."""

    array: int
    """Which array they are in; 0 where there is only one."""
    at: int
    """The position of the first of them."""
    items: list[Any]
    """Strings, if the body is as it should be."""


class StreamReader:
    """Reads `{"<long>": [[…], …], …}`, or with one level `{"<long>": […], …}`."""

    def __init__(self, long: str, *, levels: int) -> None:
        self.small: dict[str, Any] = {}
        """The other members, complete at the end."""
        self.arrays = 0
        """How many arrays the long member has had so far."""
        self.restarts = 0
        """How often the long member began anew: of duplicate keys the last wins."""
        self._long = long
        self._levels = levels
        self._events: list[tuple[str, Any]] = ijson.sendable_list()
        self._parser = ijson.basic_parse_coro(self._events)
        self._depth = 0
        self._key = ""
        self._at = 0
        self._small_events = 0
        self._builder: Any = None
        self._found = False
        self._tail = b""

    async def read(self, chunks: AsyncIterator[bytes], restart: Callable[[], None]) -> AsyncIterator[Strings]:
        """All strings of the long member. `restart` is called when what came so far does not count: it came twice."""
        begun = 0
        async for piece in _with_end(pieces_of(chunks)):
            for strings in self.feed(piece):
                if self.restarts != begun:
                    begun = self.restarts
                    restart()
                yield strings

    def feed(self, piece: bytes) -> Iterator[Strings]:
        """Read one more piece; an empty one is the end. Raises `BadRequest` for what is no such body."""
        try:
            if piece:
                self._parser.send(piece)
            else:
                self._parser.close()
        except (ijson.JSONError, UnicodeDecodeError) as error:
            raise BadRequest(json_codec.MALFORMED, f"the body is not readable as JSON: {_words(error)}") from None
        self._check_surrogates(piece)
        events = list(self._events)
        del self._events[:]
        yield from self._strings(events)
        if not piece and not self._found:
            raise BadRequest("Invalid body", f"object missing required field `{self._long}`")

    def _check_surrogates(self, piece: bytes) -> None:
        """The parser would make a question mark of half a character, which is refused everywhere else (ruling W2)."""
        text = self._tail + piece
        # What stands too near to a cut is decided in the next turn, when what follows has come.
        first, end = _PAIR // 2 if self._tail else 0, len(text) - _PAIR if piece else len(text)
        for found in _LONE_SURROGATE.finditer(text) if rb"\u" in text else ():
            if first <= found.start() < end:
                raise BadRequest(json_codec.MALFORMED, "the body is not readable as JSON: half of a surrogate pair")
        self._tail = text[-2 * _PAIR :]

    def _strings(self, events: list[tuple[str, Any]]) -> Iterator[Strings]:
        kinds = [kind for kind, _ in events]
        here = 0
        while here < len(events):
            inside = self._key == self._long and self._depth == 1 + self._levels
            if not inside or kinds[here] in _STRUCTURE:
                self._take(*events[here])
                here += 1
                continue
            end = kinds.index("end_array", here) if "end_array" in kinds[here:] else len(kinds)
            if not _STRUCTURE.isdisjoint(kinds[here:end]):
                end = next(i for i in range(here, end) if kinds[i] in _STRUCTURE)
            # Something else than a string is left to whoever checks the strings, who knows how to name it.
            items = [value if kind == "string" else None for kind, value in events[here:end]]
            yield Strings(max(self.arrays - 1, 0), self._at, items)
            self._at += end - here
            here = end

    def _take(self, kind: str, value: Any) -> None:
        """One event that is not among the strings."""
        if self._depth == 0:
            if kind != "start_map":
                raise BadRequest("Invalid body", "expected `object`")
            self._depth = 1
        elif self._depth == 1 and kind == "map_key":
            self._begin(value)
        elif self._depth == 1 and kind == "end_map":
            self._depth = 0
        elif self._key == self._long:
            self._take_long(kind)
        else:
            self._take_small(kind, value)

    def _begin(self, key: str) -> None:
        self._key, self._builder = key, None
        if key == self._long:
            self.restarts += self._found
            self._found = True
            self.arrays = self._at = 0
        else:
            self._builder = ijson.ObjectBuilder()

    def _take_long(self, kind: str) -> None:
        inside = self._depth - 1
        if kind == "start_array" and inside < self._levels:
            self._depth += 1
            if self._depth == 1 + self._levels:
                self.arrays += 1
                self._at = 0
        elif kind == "end_array":
            self._depth -= 1
        else:
            what = "an array of arrays of strings" if self._levels == 2 else "an array of strings"
            place = f"{self._long}[{self.arrays - 1}]" if self.arrays and self._levels == 2 else self._long
            raise BadRequest("Invalid body", f"{place}: must be {what}, and there is something else at {self._at}")

    def _take_small(self, kind: str, value: Any) -> None:
        self._small_events += 1
        if self._small_events > _LARGEST_SMALL:
            raise BadRequest("Invalid body", f"{self._key[:40]}: is too large")
        self._builder.event(kind, value)
        if kind in ("start_map", "start_array"):
            self._depth += 1
        elif kind in ("end_map", "end_array"):
            self._depth -= 1
        if self._depth == 1:
            self.small[self._key] = self._builder.value


def _words(error: Exception) -> str:
    """What the parser says is wrong. Its other lines quote the body, which may hold secrets."""
    if isinstance(error, UnicodeDecodeError):
        return "half of a surrogate pair, or not UTF-8"
    said = error.args[0] if error.args else ""
    text = said.decode(errors="replace") if isinstance(said, bytes) else str(said)
    return (text.splitlines() or ["it is incomplete"])[0][:100]


async def _with_end(pieces: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    async for piece in pieces:
        yield piece
    yield b""


async def pieces_of(chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """A body in pieces of bounded size; one that is a JSON string is taken out of it first (ruling W2)."""
    first = b""
    async for chunk in chunks:
        first += chunk
        if first.strip():
            break
    if first.lstrip().startswith(b'"'):
        async for chunk in chunks:
            first += chunk
            if len(first) > _LARGEST_WRAPPED:
                raise BadRequest("Invalid body", f"a body inside a JSON string: at most {_LARGEST_WRAPPED} bytes")
        first = json_codec.decode(first, str).encode()
    for start in range(0, len(first), PIECE):
        yield first[start : start + PIECE]
    async for chunk in chunks:
        for start in range(0, len(chunk), PIECE):
            yield chunk[start : start + PIECE]
