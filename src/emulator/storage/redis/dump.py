"""Reads everything in a namespace as records (`engines/records.py`).

Redis returns records and their contents in no order, so they are sorted in a temporary database on disk.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final

import msgspec

from emulator.core.errors import EngineError
from emulator.core.keys import Key
from emulator.storage import records as types
from emulator.storage.records import ITEMS_PER_RECORD, RANK, TYPES, Record, digest_of
from emulator.storage.redis.keys import (
    escaped,
    name_last_prefix,
    parse_channel_last,
    parse_expiry,
    parse_name_last,
    parse_name_last_prefix,
    parse_user_last,
)
from emulator.storage.redis.pipeline import DUMP, Pipeline
from emulator.storage.redis.server import Reply
from emulator.storage.shapes import BallotEntry, Terms

PAGE: Final = 500
"""Records between two returns to the event loop."""
Row = tuple[tuple[object, ...], Record]
"""A record with its position among the records of its type: texts and numbers, up to `_COLUMNS`."""

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
        """Add records with their positions. Redis may return the same key twice; the last one is kept."""
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


_LIST_PAGE: Final = 10 * ITEMS_PER_RECORD


class Dump:
    def __init__(self, pipeline: Pipeline) -> None:
        self._pipeline = pipeline

    async def __call__(self, *, now: int) -> AsyncIterator[Sequence[Record]]:
        sorted_records = SortedRecords()
        try:
            await _Collecting(self._pipeline, now, sorted_records.add).run()
            async for page in sorted_records.pages():
                yield page
        finally:
            sorted_records.close()


class _Collecting:
    """Reads all records of a namespace, in the unsorted order in which Redis returns them."""

    def __init__(self, pipeline: Pipeline, now: int, add: Callable[[Sequence[Row]], None]) -> None:
        self._pipeline = pipeline
        self._now = now
        self._add = add
        self._ballots: dict[bytes, tuple[Key, bytes]] = {}
        self._logs: dict[bytes, Key] = {}
        self._lists: dict[bytes, Key] = {}
        self._pools: dict[Key, dict[bytes, types.PoolRecord]] = {}
        """By id, which ascends."""
        self._rosters: dict[bytes, dict[bytes, Key]] = {}
        """By group, and then by id."""

    async def run(self) -> None:
        readers: dict[bytes, Callable[..., Row | None]] = {
            b"d": self._document,
            b"b": self._ballot,
            b"l": self._log,
            b"s": self._list,
            b"p": self._pool,
            b"g": self._dropped_pool,
            b"q": self._roster,
        }

        def things(rows: Sequence[Sequence[Reply]]) -> None:
            found = (
                readers[letter](name, *values)
                for letter, name, *values in rows
                if letter == b"l" or self._is_alive(values[0])  # the entries of a log expire one by one
            )
            self._add([each for each in found if each is not None])

        await self._scan(things, b"things")
        for key, id in self._ballots.values():
            await self._read_ballot(key, id)
        for name, key in self._logs.items():
            await self._read_log(name, key)
        for name, key in self._lists.items():
            await self._read_list(name, key)
        for pools in self._pools.values():
            for number, (id, pool) in enumerate(sorted(pools.items()), 1):
                pool = pool._replace(number=number)
                self._add([((*pool.key, number), pool)])
                await self._read_handed(pool, id)
        for group, rosters in self._rosters.items():
            await self._read_members(group, rosters)
        await self._read_spent()

    async def _scan(self, read: Callable[[Sequence[Any]], None], *args: bytes) -> None:
        """Pass the results of an operation of the script to `read`, page by page."""
        cursor = b""
        while cursor != b"0":
            cursor, *rows = await self._pipeline.run(DUMP, *args, cursor or b"0")
            read(rows)

    def _is_alive(self, ends: bytes) -> bool:
        return self._now < parse_expiry(ends)

    def _document(self, name: bytes, ends: bytes, value: bytes) -> Row:
        key = parse_user_last(name)
        return key, types.DocumentRecord(key, parse_expiry(ends), value)

    def _ballot(
        self, name: bytes, ends: bytes, id: bytes, definition: bytes | None, opens: bytes, closes: bytes, *others: bytes
    ) -> Row:
        key = parse_channel_last(name)
        self._ballots[name] = key, id
        disabled, known, *limits = map(int, others)
        terms = Terms(int(opens), parse_expiry(closes), bool(disabled), bool(known), *limits)
        return key, types.BallotRecord(key, parse_expiry(ends), definition, terms)

    def _log(self, name: bytes, *_: bytes) -> None:
        self._logs[name] = parse_channel_last(name)

    def _list(self, name: bytes, ends: bytes) -> Row:
        self._lists[name] = key = parse_user_last(name)
        return key, types.ListRecord(key, parse_expiry(ends))

    def _pool(self, name: bytes, ends: bytes, id: bytes, source: bytes, note: bytes) -> Row:
        key = parse_user_last(name)
        record = types.PoolRecord(key, 0, parse_expiry(ends), parse_user_last(source), note)
        self._pools.setdefault(key, {})[id] = record
        return self._list(source, ends)

    def _dropped_pool(self, name: bytes, ends: bytes, id: bytes) -> None:
        key = parse_user_last(name)
        self._pools.setdefault(key, {})[id] = types.PoolRecord(key, 0, parse_expiry(ends), None, b"")

    def _roster(self, name: bytes, ends: bytes, id: bytes, number: bytes, note: bytes) -> Row:
        key = parse_name_last(name)
        self._rosters.setdefault(name_last_prefix(key), {})[id] = key
        position = (key.kind, key.owner, key.channel, key.user, int(number))
        return position, types.RosterRecord(key, parse_expiry(ends), note)

    async def _read_ballot(self, key: Key, id: bytes) -> None:
        group = (key.kind, key.owner, key.name, key.user)

        def choices(flat: Sequence[bytes]) -> None:
            pairs = zip(flat[::2], flat[1::2], strict=True)
            self._add([((*group, int(since)), types.ChoiceRecord(key, choice.decode())) for choice, since in pairs])

        def entries(rows: Sequence[Sequence[Any]]) -> None:
            found: list[Row] = []
            for voter, number, choice, times, at, note, whole in rows:
                entry = BallotEntry(voter.decode(), choice.decode(), int(times), int(at), note)
                found.append(((*group, int(number)), types.EntryRecord(key, entry, bool(whole))))
            self._add(found)

        await self._scan(choices, b"scan", b"HSCAN", b"m:" + id + b":c")
        await self._scan(entries, b"entries", id)

    async def _read_log(self, name: bytes, key: Key) -> None:
        group = (key.kind, key.owner, key.name, key.user)

        def items(rows: Sequence[Sequence[bytes]]) -> None:
            self._add(
                [
                    (
                        (*group, int(place[16:32])),
                        types.ItemRecord(key, int(place[:16]), parse_expiry(place[32:]), value),
                    )
                    for place, value in rows
                    if self._is_alive(place[32:])
                ]
            )

        await self._scan(items, b"items", name)

    async def _read_list(self, name: bytes, key: Key) -> None:
        size: int = await self._pipeline.run(DUMP, b"length", name)
        for start in range(0, size, _LIST_PAGE):
            items = await self._pipeline.run(DUMP, b"list", name, b"%d" % (size - start), b"%d" % _LIST_PAGE)
            texts = [item.decode() for item in items]
            self._add(
                [
                    ((*key, start + at), types.ListItemsRecord(key, tuple(texts[at : at + ITEMS_PER_RECORD])))
                    for at in range(0, len(texts), ITEMS_PER_RECORD)
                ]
            )

    async def _read_handed(self, pool: types.PoolRecord, id: bytes) -> None:
        def handed(flat: Sequence[bytes]) -> None:
            found: list[Row] = []
            for field, item in zip(flat[::2], flat[1::2], strict=True):
                if not field.startswith(b"c"):  # the number of items of a user
                    nth, _, user = field.partition(b":")
                    record = types.HandedRecord(pool.key, pool.number, user.decode(), item.decode())
                    found.append(((*pool.key, pool.number, record.user, int(nth)), record))
            self._add(found)

        await self._scan(handed, b"scan", b"HSCAN", b"po:" + id)

    async def _read_members(self, group: bytes, rosters: Mapping[bytes, Key]) -> None:
        def members(flat: Sequence[bytes]) -> None:
            for field, ids in zip(flat[::2], flat[1::2], strict=True):
                name = field.decode()
                keys = [rosters[id] for id in ids.split(b",") if id in rosters]
                self._add(
                    [
                        ((key.kind, key.owner, key.channel, key.user, key.name, name), types.MemberRecord(key, name))
                        for key in keys
                    ]
                )

        await self._scan(members, b"scan", b"HSCAN", b"qu:" + group)

    async def _read_spent(self) -> None:
        """Read the spent items of all families; nothing lists the families, so this looks at the name of every key."""
        prefix: bytes = await self._pipeline.run(DUMP, b"prefix")
        names = {name async for page in self._pipeline.scan(escaped(prefix) + b"p[sd]:*") for name in page}
        for name in names:
            key = parse_name_last_prefix(name[len(prefix) + 3 :])
            group = (key.kind, key.owner, key.channel, key.user)
            is_digest = name.startswith(prefix + b"pd:")
            spent = partial(self._add_spent, key, group, is_digest)
            await self._scan(spent, b"scan", b"SSCAN", name.removeprefix(prefix))

    def _add_spent(self, key: Key, group: tuple[object, ...], is_digest: bool, items: Sequence[bytes]) -> None:
        digests = [item.decode() if is_digest else digest_of(item.decode()).hex() for item in items]
        self._add([((*group, digest), types.SpentRecord(key, digest)) for digest in digests])
