"""Reads everything in a namespace as records (`storage/records.py`), in a snapshot on a second connection."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator, Iterator, Sequence
from itertools import islice
from typing import Any, Final

from emulator.core.keys import Key
from emulator.storage import records as types
from emulator.storage.records import ITEMS_PER_RECORD, Record
from emulator.storage.shapes import BallotEntry, Terms
from emulator.storage.sqlite.connection import engine_errors, finished_in_thread
from emulator.storage.sqlite.namespace import Tables, id_of
from emulator.storage.sqlite.tables import KEY, TERMS, key_of

PAGE: Final = 100
"""Records between two returns to the event loop."""

_CACHE: Final = "PRAGMA cache_size = -4096"
"""4 MiB: each page is read once, so a larger cache would only be memory."""
_ALIVE: Final = "space = :space AND +expires_at > :now"
# The casts of a ballot are read one ballot at a time: to sort all casts at once would take a copy of them.
_GROUP: Final = "kind, owner, name, user"
_IN_GROUP: Final = "kind = :kind AND owner = :owner AND name = :name AND user = :user"
_GROUPS_OF_BALLOTS: Final = f"SELECT DISTINCT {_GROUP} FROM ballots WHERE {_ALIVE} ORDER BY {_GROUP}"
_GROUPS_OF_LOGS: Final = f"SELECT DISTINCT {_GROUP} FROM logs WHERE space = :space ORDER BY {_GROUP}"
_NUMBERED_POOLS: Final = f"""
    (SELECT *, row_number() OVER (PARTITION BY {KEY} ORDER BY id) AS number FROM pools WHERE {_ALIVE})
"""
_STATEMENTS: Final[dict[type[Record], str]] = {
    types.DocumentRecord: f"SELECT {KEY}, expires_at, value FROM documents WHERE {_ALIVE} ORDER BY {KEY}",
    types.BallotRecord: f"SELECT {KEY}, expires_at, definition, {TERMS} FROM ballots WHERE {_ALIVE} ORDER BY {KEY}",
    types.ChoiceRecord: f"""
        SELECT {KEY}, choice FROM ballots CROSS JOIN tallies ON tallies.ballot = ballots.id
        WHERE {_ALIVE} AND {_IN_GROUP} ORDER BY since
    """,
    types.EntryRecord: f"""
        SELECT {KEY}, voter, choice, times, cast_at, note
        FROM ballots CROSS JOIN entries INDEXED BY entries_by_age ON entries.ballot = ballots.id
        WHERE {_ALIVE} AND {_IN_GROUP} ORDER BY number
    """,
    types.ItemRecord: f"""
        SELECT {KEY}, at, expires_at, value FROM logs CROSS JOIN items INDEXED BY items_by_age ON items.log = logs.id
        WHERE logs.space = :space AND {_IN_GROUP} AND +expires_at > :now ORDER BY items.number
    """,
    types.ListRecord: f"SELECT {KEY}, expires_at FROM lists WHERE {_ALIVE} ORDER BY {KEY}",
    types.ListItemsRecord: f"""
        SELECT {KEY}, id, coalesce((SELECT position FROM pools WHERE list = lists.id), 0)
        FROM lists WHERE {_ALIVE} ORDER BY {KEY}
    """,
    types.PoolRecord: f"""
        SELECT {key_of("numbered")}, number, numbered.expires_at, note, {key_of("lists")}
        FROM {_NUMBERED_POOLS} AS numbered LEFT JOIN lists ON lists.id = list ORDER BY 1, 2, 3, 4, 5, 6
    """,
    types.HandedRecord: f"""
        SELECT {key_of("numbered")}, number, handed.user, item
        FROM {_NUMBERED_POOLS} AS numbered CROSS JOIN handed ON pool = id ORDER BY 1, 2, 3, 4, 5, 6, 7, ordinal
    """,
    types.SpentRecord: """
        SELECT kind, owner, '', channel, user, lower(hex(digest)) FROM families CROSS JOIN spent ON family = families.id
        WHERE space = :space ORDER BY kind, owner, channel, user, digest
    """,
    types.RosterRecord: f"""
        SELECT {KEY}, expires_at, note FROM rosters WHERE {_ALIVE} ORDER BY kind, owner, channel, user, number
    """,
    types.MemberRecord: f"""
        SELECT {KEY}, member FROM rosters CROSS JOIN members ON roster = id
        WHERE {_ALIVE} ORDER BY kind, owner, channel, user, name, member
    """,
}
"""The rows of each type of record, in the order of a dump: the columns of the key, then the fields of the record."""
_GROUPS: Final[dict[type[Record], str]] = {
    types.ChoiceRecord: _GROUPS_OF_BALLOTS,
    types.EntryRecord: _GROUPS_OF_BALLOTS,
    types.ItemRecord: _GROUPS_OF_LOGS,
}
"""What to read one group at a time."""
_CHUNKS: Final = "SELECT end, items FROM chunks WHERE list = ? AND end > ? ORDER BY end"


class Dump(Tables):
    async def __call__(self, *, now: int) -> AsyncIterator[Sequence[Record]]:
        self._group_commit.commit_now()  # not later: writers may never pause
        async with self._group_commit.snapshot(check_same_thread=False) as connection:
            with engine_errors():
                connection.execute(_CACHE)
                records = _records(connection, id_of(connection, self._namespace.name), now)
                # SQLite may sort a million rows first, so the event loop must not wait for a page.
                while page := await finished_in_thread(lambda: list(islice(records, PAGE)), connection.interrupt):
                    yield page


def _records(connection: sqlite3.Connection, space: int, now: int) -> Iterator[Record]:
    """Read all records of one namespace from one connection."""
    params = {"space": space, "now": now}
    for kind in types.TYPES:
        for group in _groups(connection, kind, params):
            for row in connection.execute(_STATEMENTS[kind], params | group):
                yield from _records_of_row(connection, kind, Key(*row[:5]), row[5:])


def _groups(connection: sqlite3.Connection, kind: type[Record], params: dict[str, int]) -> list[dict[str, Any]]:
    """Return the parameters of each statement that reads records of this type."""
    if kind not in _GROUPS:
        return [{}]
    groups = connection.execute(_GROUPS[kind], params).fetchall()
    return [dict(zip(_GROUP.split(", "), group, strict=True)) for group in groups]


def _records_of_row(
    connection: sqlite3.Connection, kind: type[Any], key: Key, row: tuple[Any, ...]
) -> Iterator[Record]:
    if kind is types.BallotRecord:
        expires_at, definition, opens_at, closes_at, disabled, known_voters_only, *limits = row
        terms = Terms(opens_at, closes_at, bool(disabled), bool(known_voters_only), *limits)
        yield types.BallotRecord(key, expires_at, definition, terms)
    elif kind is types.EntryRecord:
        yield types.EntryRecord(key, BallotEntry(*row))
    elif kind is types.PoolRecord:
        number, expires_at, note, *source = row
        yield types.PoolRecord(key, number, expires_at, None if source[0] is None else Key(*source), note)
    elif kind is types.ListItemsRecord:
        for items in _items(connection, *row):
            yield types.ListItemsRecord(key, items)
    else:
        yield kind(key, *row)


def _items(connection: sqlite3.Connection, list_id: int, position: int) -> Iterator[tuple[str, ...]]:
    """The items of a list from this position on, in as many as one record holds."""
    items: list[str] = []
    for end, packed in connection.execute(_CHUNKS, (list_id, position)):
        items += packed.decode().split("\0")[position - end :]
        while len(items) >= ITEMS_PER_RECORD:
            yield tuple(items[:ITEMS_PER_RECORD])
            del items[:ITEMS_PER_RECORD]
    if items:
        yield tuple(items)
