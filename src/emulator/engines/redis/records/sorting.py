"""Sorts records by type and position, in a temporary database that SQLite keeps on disk and deletes."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Sequence
from typing import Final

import msgspec

from emulator.engines.records import RANK, TYPES, Record
from emulator.errors import EngineError

PAGE: Final = 500
"""Records between two returns to the event loop."""
Row = tuple[tuple[object, ...], Record]
"""A record with its position among those of its type: texts and numbers, up to `_COLUMNS`."""

_COLUMNS: Final = 8
_NAMES: Final = ", ".join(f"p{number}" for number in range(_COLUMNS))
_CREATE = f"CREATE TABLE records (rank, {_NAMES}, record, PRIMARY KEY (rank, {_NAMES})) WITHOUT ROWID"
_ADD = f"INSERT OR REPLACE INTO records VALUES (?, {', '.join('?' * _COLUMNS)}, ?)"
_DECODERS: Final = [msgspec.msgpack.Decoder(each) for each in TYPES]
_encode = msgspec.msgpack.Encoder().encode


class SortedRecords:
    def __init__(self) -> None:
        try:
            self._connection = sqlite3.connect("", isolation_level=None)
            self._connection.execute(_CREATE)
            self._connection.execute("BEGIN")
        except sqlite3.Error as error:
            raise EngineError(f"cannot sort a dump: {error}") from error

    def add(self, rows: Sequence[Row]) -> None:
        """Add records with their positions. Redis may return a thing twice; the later one is kept."""
        padding = ("",) * _COLUMNS
        try:
            self._connection.executemany(
                _ADD,
                [(RANK[type(record)], *(*at, *padding)[:_COLUMNS], _encode(record)) for at, record in rows],
            )
        except sqlite3.Error as error:
            raise EngineError(f"cannot sort a dump: {error}") from error

    async def pages(self) -> AsyncIterator[Sequence[Record]]:
        rows = self._connection.execute(f"SELECT rank, record FROM records ORDER BY rank, {_NAMES}")
        while page := rows.fetchmany(PAGE):
            yield [_DECODERS[rank].decode(record) for rank, record in page]
            await asyncio.sleep(0)

    def close(self) -> None:
        self._connection.close()
