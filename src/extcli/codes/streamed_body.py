"""A JSON body too large to be held: arrays of strings, read from their sources while it is sent."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from extcli.codes.entries import Entries
from extcli.errors import CliError


def joined(items: Sequence[str]) -> bytes:
    """Strings as they stand in a JSON array, a comma behind each."""
    text = '","'.join(items)
    if text.count('"') == 2 * (len(items) - 1) and "\\" not in text and text.isprintable():
        return f'"{text}",'.encode()
    return f"{json.dumps(items, ensure_ascii=False, separators=(',', ':'))[1:-1]},".encode()


class StreamedBody:
    """`{"<name>": …, <others>}`. An iteration is one attempt to send it, and reads the sources anew."""

    def __init__(
        self, name: str, sources: Sequence[Entries], sizes: Sequence[int], *, levels: int, others: dict[str, Any]
    ) -> None:
        """`sizes` says how many bytes `joined` makes of each source; with two levels each is an array of its own."""
        self._sources = sources
        self._begin = f'{{"{name}":{"[" * levels}'.encode()
        self._between = b"],[" if levels > 1 else b","
        text = json.dumps(others, ensure_ascii=False, separators=(",", ":"))
        self._end = f"{']' * levels},{text[1:]}".encode()
        # The last comma of each array is never sent.
        arrays = sum(max(size - 1, 0) for size in sizes)
        self.length = len(self._begin) + arrays + len(self._between) * (len(sources) - 1) + len(self._end)
        self.sent: Callable[[int], None] = lambda _: None
        """Told how many bytes have been taken."""

    def __iter__(self) -> Iterator[bytes]:
        taken = 0
        for piece in self._pieces():
            taken += len(piece)
            yield piece
            self.sent(taken)
        if taken + len(self._end) != self.length or any(source.changed for source in self._sources):
            # Without its end the body is none, and the service takes nothing of it.
            raise CliError(
                "a file was changed while it was sent",
                why="what was sent so far is not what had been looked at, so the rest was not sent",
                fix="nothing was changed at the service; try again when the files are complete",
            )
        yield self._end
        self.sent(self.length)

    def _pieces(self) -> Iterator[bytes]:
        yield self._begin
        for position, source in enumerate(self._sources):
            if position:
                yield self._between
            waiting = b""
            for batch in source:
                if not batch.items:
                    continue
                if waiting:
                    yield waiting
                waiting = joined(batch.items)
            yield waiting.removesuffix(b",")
