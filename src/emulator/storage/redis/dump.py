"""Reads everything in a namespace as records (`storage/records.py`), and writes records. The catalog walks the same
namespace through its index of expiries in bounded steps, so writes need no further index.

Redis returns records and their contents in no order, so they are sorted on the way out. To replace everything, records
are written under a new generation in short steps, and then that generation becomes the present one. Other records are
written in one operation, so they must be few.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import closing, suppress
from functools import partial
from typing import Any

import msgspec

from emulator.core.errors import EngineError
from emulator.core.keys import NEVER, Expired, Key
from emulator.storage import records as types
from emulator.storage.merging import PAGE_SIZE
from emulator.storage.records import TYPES, Record, sort_position
from emulator.storage.redis.ballots import parse_entry
from emulator.storage.redis.client import Client, Script
from emulator.storage.redis.keys import CHANNEL_LAST, NAME_LAST, USER_LAST, escape, parse_thing
from emulator.storage.shapes import CatalogSearch, DocumentOrPool, Terms

LOAD_STEP = 250
"""Records that one operation writes."""
_AFTER_NUMBERS = ":"
"""After all numbers."""
_SORT_COLUMNS = 9
_SORT_KEY = ", ".join(f"p{number}" for number in range(_SORT_COLUMNS))
"""The columns that sort records: texts and numbers."""
_LETTERS_AND_KEYS: Mapping[type[Record], tuple[str, Callable[[Key], str]]] = {
    types.DocumentRecord: ("d", USER_LAST.text),
    types.BallotRecord: ("b", CHANNEL_LAST.text),
    types.ChoiceRecord: ("c", CHANNEL_LAST.text),
    types.EntryRecord: ("e", CHANNEL_LAST.text),
    types.ItemRecord: ("l", CHANNEL_LAST.text),
    types.ListRecord: ("s", USER_LAST.text),
    types.ListItemsRecord: ("t", USER_LAST.text),
    types.PoolRecord: ("p", USER_LAST.text),
    types.HandedRecord: ("h", USER_LAST.text),
    types.SpentRecord: ("x", NAME_LAST.group),
    types.RosterRecord: ("q", NAME_LAST.text),
    types.MemberRecord: ("m", NAME_LAST.text),
}
"""The letter of each type in the scripts, and the text of its key."""


def _script_row(record: Record) -> tuple[object, ...]:
    """Return a record as the scripts take it."""
    letter, text = _LETTERS_AND_KEYS[type(record)]
    return letter, text(record[0]), *record[1:]


_FoundRecords = AsyncIterator[tuple[Record, int]]
"""Records, each with its place among those of the same position."""


class RedisDump:
    def __init__(self, client: Client) -> None:
        self._reading = client.script("dump")
        self._ballots = client.script("ballots")
        self._write = client.script("load").run

    async def dump(self, *, now: int) -> AsyncIterator[Sequence[Record]]:
        # The records are sorted in a temporary database, which uses the disk if they are many.
        with closing(sqlite3.connect("", isolation_level=None)) as database:
            try:
                database.execute(f"CREATE TABLE rows ({_SORT_KEY}, record, PRIMARY KEY ({_SORT_KEY})) WITHOUT ROWID")
                database.execute("BEGIN")
                async for record, number in self._read_all(now):
                    rank = TYPES.index(type(record))
                    place = (rank, *sort_position(record), number)
                    row = *place, *[""] * (_SORT_COLUMNS - len(place)), msgspec.msgpack.encode(record)
                    # It replaces the row in this place, because Redis may return one twice.
                    database.execute(f"INSERT OR REPLACE INTO rows VALUES ({', '.join('?' * len(row))})", row)
                rows = database.execute(f"SELECT p0, record FROM rows ORDER BY {_SORT_KEY}")
                while page := rows.fetchmany(PAGE_SIZE):
                    yield [msgspec.msgpack.decode(record, type=TYPES[rank]) for rank, record in page]
                    await asyncio.sleep(0)
            except sqlite3.Error as error:
                raise EngineError(f"cannot sort records: {error}") from error

    async def load(self, pages: AsyncIterator[Sequence[Record]], *, replace: bool) -> None:
        if not replace:
            rows = [_script_row(record) async for page in pages for record in page]
            await self._write("write", None, rows)
            return
        generation = await self._write("begin")
        try:
            async for page in pages:
                for start in range(0, len(page), LOAD_STEP):
                    rows = [_script_row(record) for record in page[start : start + LOAD_STEP]]
                    await self._write("write", generation, rows)
            if not await self._write("show", generation):
                raise EngineError("the load took too long; nothing was replaced")
        except BaseException:
            with suppress(EngineError):  # `tidy` finds it in the end
                await self._write("give_up", generation)
            raise

    async def _read_all(self, now: int) -> _FoundRecords:
        readers: Mapping[bytes, Callable[..., _FoundRecords]] = {
            b"d": self._read_document,
            b"b": self._read_ballot,
            b"l": partial(self._read_log, now),
            b"s": self._read_list,
            b"p": self._read_pool,
            b"g": self._read_pool,
            b"q": self._read_roster,
        }
        groups = set()
        async for letter, name, ends, *values in self._read_rows("things", now):
            async for found in readers[letter](name, ends, *values):
                yield found
            if letter == b"q":
                groups.add(name.rpartition(b"|")[0])
        for group in groups:
            async for member, name in self._read_rows("members", group, now):
                yield types.MemberRecord(NAME_LAST.parse(group + b"|" + name), member.decode()), 0
        for family in await self._reading.run("families"):
            async for digest in self._read_rows("spent", family):
                yield types.SpentRecord(NAME_LAST.parse(family), digest.decode()), 0

    async def _read_document(self, name: bytes, ends: int, value: bytes) -> _FoundRecords:
        yield types.DocumentRecord(USER_LAST.parse(name), ends, value), 0

    async def _read_ballot(
        self, name: bytes, ends: int, definition: bytes | None, packed: bytes | None, id: bytes
    ) -> _FoundRecords:
        key = CHANNEL_LAST.parse(name)
        terms = Terms() if packed is None else msgspec.msgpack.decode(packed, type=Terms)
        yield types.BallotRecord(key, ends, definition, terms), 0
        async for choice, number in self._read_rows("choices", id):
            yield types.ChoiceRecord(key, choice.decode()), number
        fetch, has_more = self._ballots.page_reader(b"-", id, _AFTER_NUMBERS), True
        while has_more:
            rows, has_more = await fetch(LOAD_STEP)
            for row in rows:
                yield types.EntryRecord(key, parse_entry(row)), row[1]

    async def _read_log(self, now: int, name: bytes, _: int) -> _FoundRecords:
        async for number, at, ends, value in self._read_rows("entries", name, now):
            yield types.ItemRecord(CHANNEL_LAST.parse(name), at, ends, value), number

    async def _read_list(self, name: bytes, ends: int) -> _FoundRecords:
        key = USER_LAST.parse(name)
        yield types.ListRecord(key, ends), 0
        async for position, *items in self._read_rows("list", name):
            yield types.ListItemsRecord(key, tuple(item.decode() for item in items)), position

    async def _read_pool(
        self, name: bytes, ends: int, number: int, id: bytes, source: bytes | None = None, note: bytes = b""
    ) -> _FoundRecords:
        """Without a source, it is a dropped pool."""
        key, list_key = USER_LAST.parse(name), None
        if source is not None:
            list_key = USER_LAST.parse(source)
            async for found in self._read_list(source, ends):
                yield found
        yield types.PoolRecord(key, number, ends, list_key, note), 0
        async for user, items in self._read_rows("handed", id):
            for place, item in enumerate(items):
                yield types.HandedRecord(key, number, user.decode(), item.decode()), place

    async def _read_roster(self, name: bytes, ends: int, number: int, note: bytes) -> _FoundRecords:
        yield types.RosterRecord(NAME_LAST.parse(name), ends, note), number

    async def _read_rows(self, operation: str, *args: object) -> AsyncIterator[Any]:
        async for rows in self._reading.scan(operation, *args):
            for row in rows:
                yield row


WALK_STEP = 500
"""Things that one operation looks at."""
_LISTED_LETTERS = (b"b", b"l")
"""The letters of ballots and logs, which have listings of their own."""


class RedisCatalog:
    def __init__(self, namespace: Script) -> None:
        self._namespace = namespace

    async def count(self, kinds: Sequence[str], *, now: int, most: int) -> dict[str, int]:
        counted = Counter(thing.key.kind for _, thing in await self._walk_expiries(kinds, now))
        return {kind: min(most, counted[kind]) for kind in kinds}

    async def owners(self, kind: str, *, now: int, limit: int, after: str = "") -> list[str]:
        things = await self._walk_expiries([kind], now)
        found = {thing.key.owner for letter, thing in things if letter in _LISTED_LETTERS}
        return sorted(owner for owner in found if owner > after)[:limit]

    async def things(self, search: CatalogSearch, *, now: int, limit: int) -> list[DocumentOrPool]:
        kinds, owner, channel, matching, after = search
        chosen = [
            thing
            for letter, thing in await self._walk_expiries(kinds, now)
            if letter not in _LISTED_LETTERS
            and (after is None or after < thing.key)
            and owner in (None, thing.key.owner)
            and channel in (None, thing.key.channel)
            and any(matching in (part or "") for part in thing.key[2:])
        ]
        return sorted(chosen)[:limit]

    async def upcoming(self, kinds: Sequence[str], *, now: int, limit: int) -> list[Expired]:
        things = [thing for _, thing in await self._walk_expiries(kinds, now)]
        found = [Expired(thing.key, thing.expires_at) for thing in things if thing.expires_at < NEVER]
        return sorted(found, key=lambda one: (one.at, one.key))[:limit]

    async def _walk_expiries(self, kinds: Sequence[str], now: int) -> list[tuple[bytes, DocumentOrPool]]:
        """Return the live records of these kinds, with the letters of their types."""
        found: dict[bytes, tuple[bytes, DocumentOrPool]] = {}
        rank, is_last = 0, False
        names = [escape(kind) for kind in kinds]
        while not is_last:
            count, is_last, *rows = await self._namespace.run("expiries", rank, WALK_STEP, names, now)
            rank += count
            for name, ends, size in rows:  # one may move to a later rank meanwhile
                found[name] = name[:1], DocumentOrPool(parse_thing(name), ends, size)
        return list(found.values())
