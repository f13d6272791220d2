"""Lines and items of a response that is read piece by piece, so that only one of them is in memory."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Iterator
from itertools import accumulate
from typing import Any

from extcli.bounded_json import DEEPEST
from extcli.errors import TooLarge

LARGEST_ITEM = 16 << 20
"""Bytes of one line or item. The largest record of an extension service is far smaller."""

_TEXT = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"', re.DOTALL)
_TEXT_OR_REST = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+("|\\?\Z)', re.DOTALL)
"""A text, or the beginning of one that the piece does not end."""
_STEPS = bytes.maketrans(b"[{]}", b"\x01\x01\xff\xff")
"""Brackets to 1 and -1, as signed bytes."""
_OTHERS = bytes(set(range(256)) - set(b"[{]}"))
_DIGITS = b"0123456789"
_MOST_DIGITS = 4_300
_LONG_NUMBER = re.compile(rb"(?<![0-9])[0-9]{%d}" % (_MOST_DIGITS + 1))

LARGEST_WHOLE = 256 << 20
"""Bytes of a streamed response, or of all pages of a list, that are held in memory for a table or a query."""


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
            raise TooLarge(f"a line in {source}", LARGEST_ITEM)
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
        except (ijson.JSONError, ArithmeticError) as error:  # also an exponent of 20 digits
            raise ValueError("not JSON") from error
        counted.size = 0
        yield item


def limit_size(pieces: Iterable[bytes], source: str) -> Iterator[bytes]:
    """Yield pieces that are held in memory as a whole. Raises `TooLarge` above `LARGEST_WHOLE`."""
    size = 0
    for piece in pieces:
        size += len(piece)
        if size > LARGEST_WHOLE:
            raise TooLarge(source, LARGEST_WHOLE)
        yield piece


def parseable(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the pieces of a JSON text. Raises `ValueError` before ijson sees what it cannot parse safely.

    Its memory grows with the square of the depth, and an error inside its compiled parser may end the process: Python
    refuses to convert a number of over 4,300 digits.
    """
    before, depth, digits = b"", 0, 0
    for piece in pieces:
        text = before + piece
        end = _end_of_complete(text)
        rest = text[end:]
        # A text that goes on in the next piece. Only its quote and the state of its end matter.
        before = rest[:1] + b"\\" * ((len(rest) - len(rest.rstrip(b"\\"))) % 2)
        structure = _TEXT.sub(b"", text[:end])
        steps = memoryview(structure.translate(_STEPS, _OTHERS)).cast("b")
        if max(accumulate(steps, initial=depth)) > DEEPEST:
            raise ValueError("nested too deeply")
        depth += sum(steps)
        first = len(structure) - len(structure.lstrip(_DIGITS))
        last = len(structure) - len(structure.rstrip(_DIGITS))
        if digits + first > _MOST_DIGITS or _LONG_NUMBER.search(structure):
            raise ValueError(f"a number of over {_MOST_DIGITS:,} digits")
        digits = last + (digits if last == len(structure) else 0)
        yield piece


def _end_of_complete(text: bytes) -> int:
    """Return the position where an unclosed string begins; the length of the piece if all strings are closed."""
    if b"\\" in text:
        last = deque(_TEXT_OR_REST.finditer(text), maxlen=1)
        return last[0].start() if last and last[0][1] != b'"' else len(text)
    return text.rindex(b'"') if text.count(b'"') % 2 else len(text)


class _Counted:
    """Passes on pieces of JSON, and counts their bytes since `size` was set to 0."""

    def __init__(self, pieces: Iterable[bytes], source: str) -> None:
        self._pieces = pieces
        self._source = source
        self.size = 0

    def __iter__(self) -> Iterator[bytes]:
        for piece in parseable(self._pieces):
            self.size += len(piece)
            if self.size > LARGEST_ITEM:
                raise TooLarge(f"an item in {self._source}", LARGEST_ITEM)
            yield piece
