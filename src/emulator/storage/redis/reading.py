"""Reads many records in bounded steps, and sorts what Redis returns in no order."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Sequence
from typing import Any, Final, Self

import msgspec

from emulator.core.errors import EngineError
from emulator.core.keys import Key
from emulator.storage.merging import PAGE, Fetch, Row
from emulator.storage.redis.client import Reply, Script, blob
from emulator.storage.redis.keys import listed_range, parse_place

STEP = 50
"""Things that one operation looks at."""


async def listing(
    script: Script, group: Key, *, now: int, limit: int, after: Key | None, matching: str
) -> list[tuple[Key, list[Reply]]]:
    """Return up to `limit` ballots or logs after `after`, each with the result of the script's `describe`."""
    found: list[tuple[Key, list[Reply]]] = []
    index, first, last = listed_range(group, after)
    while len(found) < limit:
        most = STEP if matching else min(STEP, limit - len(found))
        place, *rows = await script.run("listing", index, first, last, now, most, matching)
        found += [(parse_place(group, row[0]), row[1:]) for row in rows]
        if not place:
            break
        first = f"({place.decode()}"
    return found[:limit]


def fetch_from(start: bytes, script: Script, *args: object) -> Fetch:
    """Return what reads the pages of a ballot or log, from a bound of their sorted set on."""

    async def fetch(size: int) -> tuple[list[Row], bool]:
        nonlocal start
        last, rows = await script.run("page", blob(start), size, *args)
        start = b"(" + last
        return [tuple(row) for row in rows], bool(last)

    return fetch


_COLUMNS: Final = 9
_NAMES: Final = ", ".join(f"p{number}" for number in range(_COLUMNS))
_encode = msgspec.msgpack.Encoder().encode


class Sorting:
    """Sorts values in a temporary database, which uses the disk if they are many."""

    def __enter__(self) -> Self:
        self._database = sqlite3.connect("", isolation_level=None)
        self._database.execute(f"CREATE TABLE rows ({_NAMES}, value, PRIMARY KEY ({_NAMES})) WITHOUT ROWID")
        self._database.execute("BEGIN")
        return self

    def __exit__(self, _: object, error: BaseException | None, traceback: object) -> None:
        self._database.close()
        if isinstance(error, sqlite3.Error):
            raise EngineError(f"cannot sort records: {error}") from error

    def add(self, position: Sequence[object], value: object) -> None:
        """Add a value at a position: texts and numbers. It replaces one there, because Redis may return one twice."""
        row = *position, *[""] * (_COLUMNS - len(position)), _encode(value)
        self._database.execute(f"INSERT OR REPLACE INTO rows VALUES ({', '.join('?' * len(row))})", row)

    async def pages(self) -> AsyncIterator[list[Any]]:
        """Iterate over pages of the values in order, each as plain lists, texts, bytes and numbers."""
        rows = self._database.execute(f"SELECT value FROM rows ORDER BY {_NAMES}")
        while page := rows.fetchmany(PAGE):
            yield [msgspec.msgpack.decode(value) for (value,) in page]
            await asyncio.sleep(0)
