"""Rosters on SQLite: one row per member, with an index that finds all rosters of a member."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence

from emulator.core.keys import Key
from emulator.storage.pools import Listed
from emulator.storage.sqlite.namespace import Tables, reads, writes
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
_PAGE = 100
_ALL = f"SELECT name, note, expires_at FROM rosters WHERE {_GROUP} AND (name, 1) > (?, ?) ORDER BY name LIMIT {_PAGE}"


class SqliteRosters(Tables):
    @writes
    def add_members(self, key: Key, members: Sequence[str], *, now: int, expires_at: int) -> None:
        "".join(members).encode()  # raises for text that cannot be stored, before anything is written
        id, end = self._find(_FIND, key) or (None, 0)
        if id is not None and end <= now:
            self._remove(ROSTERS, id)
            id = None
        if id is None:
            id = self._add(ROSTERS, key, expires_at, b"", self.group_commit.next_number())
        elif end < expires_at:
            self._execute(_SET_EXPIRY, expires_at, id)
        # In index order: with a million members, any other order takes twice as long.
        self.group_commit.connection.executemany(_ADD_MEMBER, [(id, member) for member in sorted(members)])

    @writes
    def annotate(self, key: Key, note: bytes, *, now: int, expires_at: int) -> bool:
        number = self.group_commit.next_number()
        return bool(self._execute(_ANNOTATE, note, number, expires_at, *self._namespace.params(key), now).rowcount)

    @reads
    def listing(self, key: Key, members: Sequence[str], *, now: int) -> list[Listed]:
        found: dict[tuple[int, int], Listed] = {}
        for member in members:
            for number, id, name, note in self._execute(_LISTING, member, *self._group(key), now):
                found.setdefault((number, id), Listed(name, note, [])).members.append(member)
        return [found[place] for place in sorted(found)]

    async def all(self, key: Key, *, now: int) -> AsyncIterator[Mapping[str, bytes]]:
        start = "", 0
        while rows := await self._select_page(key, start):
            start = rows[-1][0], 1
            yield {name: note for name, note, expires_at in rows if now < expires_at}

    @writes
    def drop(self, keys: Sequence[Key], *, now: int) -> None:
        for key in keys:
            if row := self._find(_FIND, key):
                self._remove(ROSTERS, row[0])

    @reads
    def _select_page(self, key: Key, start: tuple[str, int]) -> list[tuple[str, bytes, int]]:
        return self._execute(_ALL, *self._group(key), *start).fetchall()

    def _group(self, key: Key) -> tuple[object, ...]:
        space, kind, owner, _, channel, user = self._namespace.params(key)
        return space, kind, owner, channel, user
