"""Rosters on SQLite: one row per member, with an index that finds all rosters of a member."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Final

from emulator.core.keys import Key
from emulator.storage.pools import Listed
from emulator.storage.sqlite.namespace import Tables
from emulator.storage.sqlite.tables import BY_KEY, MEMBERS, ROSTERS

_FIND = f"SELECT id, expires_at FROM rosters WHERE {BY_KEY}"
_GROUP = "space = ? AND kind = ? AND owner = ? AND channel = ? AND user = ?"
_SET_EXPIRY = "UPDATE rosters SET expires_at = ? WHERE id = ?"
_ANNOTATE = (
    f"UPDATE rosters SET note = ?, number = ?, expires_at = max(expires_at, ?) WHERE {BY_KEY} AND expires_at > ?"
)
_ADD_MEMBER = f"{MEMBERS.insert} ON CONFLICT DO NOTHING"
_LISTING = f"""
    SELECT number, id, name, note FROM members CROSS JOIN rosters ON id = roster
    WHERE member = ? AND {_GROUP} AND expires_at > ?
"""
_PAGE: Final = 100
_ALL = f"SELECT name, note, expires_at FROM rosters WHERE {_GROUP} AND (name, 1) > (?, ?) ORDER BY name LIMIT {_PAGE}"


class SqliteRosters(Tables):
    async def add_members(self, key: Key, members: Sequence[str], *, now: int, expires_at: int) -> None:
        await self._group_commit.write(self._add_members, key, members, now, expires_at)

    async def annotate(self, key: Key, note: bytes, *, now: int, expires_at: int) -> bool:
        return await self._group_commit.write(self._annotate, key, note, now, expires_at)

    async def listing(self, key: Key, members: Sequence[str], *, now: int) -> list[Listed]:
        return await self._group_commit.read(self._listing, key, members, now)

    async def all(self, key: Key, *, now: int) -> AsyncIterator[Mapping[str, bytes]]:
        start = "", 0
        while rows := await self._group_commit.read(self._select_page, key, start):
            start = rows[-1][0], 1
            yield {name: note for name, note, expires_at in rows if now < expires_at}

    async def drop(self, keys: Sequence[Key], *, now: int) -> None:
        await self._group_commit.write(self._drop, keys)

    def _add_members(self, key: Key, members: Sequence[str], now: int, expires_at: int) -> None:
        "".join(members).encode()  # raises for text that cannot be stored, before anything is written
        connection = self._group_commit.connection
        row = connection.execute(_FIND, self._namespace.params(key)).fetchone()
        id, end = row or (None, 0)
        if id is not None and end <= now:
            ROSTERS.remove(connection, id)
            id = None
        if id is None:
            id = self._namespace.next_number()
            connection.execute(ROSTERS.insert, (id, *self._namespace.params(key), expires_at, b"", id))
        elif end < expires_at:
            connection.execute(_SET_EXPIRY, (expires_at, id))
        # In index order: with a million members, any other order takes twice as long.
        connection.executemany(_ADD_MEMBER, [(id, member) for member in sorted(members)])

    def _annotate(self, key: Key, note: bytes, now: int, expires_at: int) -> bool:
        params = (note, self._namespace.next_number(), expires_at, *self._namespace.params(key), now)
        return bool(self._group_commit.connection.execute(_ANNOTATE, params).rowcount)

    def _group(self, key: Key) -> tuple[object, ...]:
        space, kind, owner, _, channel, user = self._namespace.params(key)
        return space, kind, owner, channel, user

    def _select_page(self, key: Key, start: tuple[str, int]) -> list[tuple[str, bytes, int]]:
        return self._group_commit.connection.execute(_ALL, (*self._group(key), *start)).fetchall()

    def _listing(self, key: Key, members: Sequence[str], now: int) -> list[Listed]:
        found: dict[tuple[int, int], Listed] = {}
        for member in members:
            params = (member, *self._group(key), now)
            for number, id, name, note in self._group_commit.connection.execute(_LISTING, params):
                found.setdefault((number, id), Listed(name, note, [])).members.append(member)
        return [found[place] for place in sorted(found)]

    def _drop(self, keys: Sequence[Key]) -> None:
        found = [self._group_commit.connection.execute(_FIND, self._namespace.params(key)).fetchone() for key in keys]
        for id, _ in {row for row in found if row is not None}:
            ROSTERS.remove(self._group_commit.connection, id)
