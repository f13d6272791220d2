"""Lines and items of an answer that is read piece by piece, so that only one of them is in memory."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

from extcli.bounded_json import DEEPEST
from extcli.errors import TooLarge

LARGEST_ITEM = 16 << 20
"""Bytes of one line or item. The largest record of an extension service is far smaller."""

_TEXT = re.compile(rb'"(?:[^"\\]++|\\.)*+"', re.DOTALL)
_OTHERS = re.compile(rb"[^\[\]{}]++")
_PAIR = re.compile(rb"\[\]|\{\}")

LARGEST_WHOLE = 256 << 20
"""Bytes of a streamed answer, or of all pages of a list, that are held in memory for a table or a query."""


def lines(pieces: Iterable[bytes], source: str) -> Iterator[bytes]:
    """Yield each line without its end; a last one also without a line break.

    `source` names the stream in `TooLarge`, which is raised for a line above `LARGEST_ITEM`.
    """
    parts: list[bytes] = []
    size = 0
    for piece in pieces:
        *complete, rest = piece.split(b"\n")
        for line in complete:
            yield b"".join([*parts, line]).removesuffix(b"\r")
            parts, size = [], 0
        parts.append(rest)
        size += len(rest)
        if size > LARGEST_ITEM:
            raise TooLarge(f"a line of {source}", LARGEST_ITEM)
    if size:
        yield b"".join(parts).removesuffix(b"\r")


def items(pieces: Iterable[bytes], at: str, source: str) -> Iterator[Any]:
    """Yield the values at an ijson path of a JSON text, such as `result.item`.

    Raises `TooLarge` for more than `LARGEST_ITEM` bytes without such a value, and `ValueError` for another text.
    """
    import ijson  # type: ignore[import-untyped]

    counted = _Counted(pieces, source)
    found = ijson.items(ijson.from_iter(iter(counted)), at)
    while True:
        try:
            item = next(found)
        except StopIteration:
            return
        except ijson.JSONError as error:
            raise ValueError("not JSON") from error
        counted.size = 0
        yield item


def limited(pieces: Iterable[bytes], source: str) -> Iterator[bytes]:
    """Yield pieces that are held in memory as a whole. Raises `TooLarge` above `LARGEST_WHOLE`."""
    size = 0
    for piece in pieces:
        size += len(piece)
        if size > LARGEST_WHOLE:
            raise TooLarge(source, LARGEST_WHOLE)
        yield piece


class _Counted:
    """Pieces of JSON, and how many bytes of them came since `size` was set to 0."""

    def __init__(self, pieces: Iterable[bytes], source: str) -> None:
        self._pieces = pieces
        self._source = source
        self._depth = _Depth()
        self.size = 0

    def __iter__(self) -> Iterator[bytes]:
        for piece in self._pieces:
            self.size += len(piece)
            if self.size > LARGEST_ITEM:
                raise TooLarge(f"an item of {self._source}", LARGEST_ITEM)
            self._depth.check(piece)
            yield piece


class _Depth:
    """Finds out that JSON is nested too deeply before ijson does: its memory grows with the square of the depth."""

    def __init__(self) -> None:
        self._open = 0
        """Arrays and objects that are open."""
        self._text = b""
        """The beginning of a text that goes on in the next piece."""

    def check(self, piece: bytes) -> None:
        """Read the next piece. Raises `ValueError`."""
        structure = _TEXT.sub(b"", self._text + piece)
        structure, quote, rest = structure.partition(b'"')
        self._text = quote + rest
        structure = _OTHERS.sub(b"", structure)
        for _ in range(DEEPEST):
            if not (flatter := _PAIR.sub(b"", structure)) or len(flatter) == len(structure):
                structure = flatter
                break
            structure = flatter
        opened = structure.count(b"[") + structure.count(b"{")
        self._open += 2 * opened - len(structure)
        if max(self._open, opened) > DEEPEST:
            raise ValueError("nested too deeply")
