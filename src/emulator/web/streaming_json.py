"""Streaming JSON: objects with one member too large for memory. Other requests run after each piece of 1 to 2 ms."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any, Final, NamedTuple

import ijson  # type: ignore[import-untyped]

from emulator.errors import BadRequest
from emulator.wire import json_codec

PIECE: Final = 32 * 1024
"""Bytes parsed before other requests run."""
_MAX_SMALL_EVENTS: Final = 100_000
"""Parser events in all small members together."""
_MAX_WRAPPED: Final = 4 * 1024 * 1024
"""Bytes of a body wrapped in a JSON string (ruling W2)."""
_STRUCTURE: Final = frozenset({"start_array", "end_array", "start_map", "end_map", "map_key"})
_PAIR: Final = 12
"""Bytes of an escaped surrogate pair."""
_LONE_SURROGATE: Final = re.compile(
    rb"\\u[dD][89abAB][0-9a-fA-F]{2}(?!\\u[dD][c-fC-F])|(?<!\\u[dD][89abAB][0-9a-fA-F]{2})\\u[dD][c-fC-F]"
)


class Strings(NamedTuple):
    """Consecutive strings of the long member."""

    array: int
    """The index of their array; 0 with one level."""
    at: int
    """The index of the first string in its array."""
    items: list[Any]
    """The strings; `None` for an item that is not a string."""


class StreamReader:
    """Reads `{"<long>": [[…], …], …}` with two levels, `{"<long>": […], …}` with one."""

    def __init__(self, long: str, *, levels: int) -> None:
        self.small: dict[str, Any] = {}
        """The other members; complete at the end."""
        self.arrays = 0
        """The number of arrays so far."""
        self.restarts = 0
        """The number of times the long member was repeated; the last one wins."""
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
        """Yield all strings of the long member. If the member is repeated, calls `restart` and starts again."""
        restarts = 0
        async for piece in _pieces(chunks):
            for strings in self._feed(piece):
                if self.restarts != restarts:
                    restarts = self.restarts
                    restart()
                yield strings

    def _feed(self, piece: bytes) -> Iterator[Strings]:
        """Parse one piece; an empty piece is the end. Raises `BadRequest` if the body is malformed."""
        try:
            if piece:
                self._parser.send(piece)
            else:
                self._parser.close()
        except (ijson.JSONError, UnicodeDecodeError) as error:
            raise BadRequest(json_codec.MALFORMED, f"the body is not valid JSON: {_error_text(error)}") from None
        self._check_surrogates(piece)
        events = list(self._events)
        del self._events[:]
        yield from self._strings(events)
        if not piece and not self._found:
            raise BadRequest("Invalid body", f"object missing required field `{self._long}`")

    def _check_surrogates(self, piece: bytes) -> None:
        """Reject lone surrogates (ruling W2); the parser would replace them with question marks."""
        text = self._tail + piece
        # A match near the end is decided with the next piece, which may complete the pair.
        first, end = _PAIR // 2 if self._tail else 0, len(text) - _PAIR if piece else len(text)
        for found in _LONE_SURROGATE.finditer(text) if rb"\u" in text else ():
            if first <= found.start() < end:
                raise BadRequest(json_codec.MALFORMED, "the body is not valid JSON: lone surrogate")
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
            # The caller reports items that are not strings, because it can name them.
            items = [value if kind == "string" else None for kind, value in events[here:end]]
            yield Strings(max(self.arrays - 1, 0), self._at, items)
            self._at += end - here
            here = end

    def _take(self, kind: str, value: Any) -> None:
        """Handle an event other than a string of the long member."""
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
            expected = "an array of arrays of strings" if self._levels == 2 else "an array of strings"
            place = f"{self._long}[{self.arrays - 1}]" if self.arrays and self._levels == 2 else self._long
            raise BadRequest("Invalid body", f"{place}: must be {expected}; found another value at index {self._at}")

    def _take_small(self, kind: str, value: Any) -> None:
        self._small_events += 1
        if self._small_events > _MAX_SMALL_EVENTS:
            raise BadRequest("Invalid body", f"{self._key[:40]}: has over {_MAX_SMALL_EVENTS} JSON tokens")
        self._builder.event(kind, value)
        if kind in ("start_map", "start_array"):
            self._depth += 1
        elif kind in ("end_map", "end_array"):
            self._depth -= 1
        if self._depth == 1:
            self.small[self._key] = self._builder.value


def _error_text(error: Exception) -> str:
    """The first line of the parser's message; the other lines quote the body, which may contain secrets."""
    if isinstance(error, UnicodeDecodeError):
        return "lone surrogate, or not UTF-8"
    message = error.args[0] if error.args else ""
    text = message.decode(errors="replace") if isinstance(message, bytes) else str(message)
    return (text.splitlines() or ["it is incomplete"])[0][:100]


async def _pieces(chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Yield the body in pieces of at most `PIECE` bytes, then an empty one. Unwraps a JSON string (ruling W2)."""
    first = b""
    async for chunk in chunks:
        first += chunk
        if first.strip():
            break
    if first.lstrip().startswith(b'"'):
        async for chunk in chunks:
            first += chunk
            if len(first) > _MAX_WRAPPED:
                raise BadRequest("Invalid body", f"a body inside a JSON string may have at most {_MAX_WRAPPED} bytes")
        first = json_codec.decode(first, str).encode()
    for start in range(0, len(first), PIECE):
        yield first[start : start + PIECE]
    async for chunk in chunks:
        for start in range(0, len(chunk), PIECE):
            yield chunk[start : start + PIECE]
    yield b""
