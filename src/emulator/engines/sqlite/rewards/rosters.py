"""Rosters on SQLite: one row per member, indexed so that one lookup finds all rosters of a member."""

from __future__ import annotations

from collections.abc import Sequence

from emulator.engines.base import Key
from emulator.engines.sqlite.namespace_ids import BY_KEY, Tables
from emulator.engines.sqlite.table_list import MEMBERS, ROSTERS

_FIND = f"SELECT id, root, expires_at FROM rosters WHERE {BY_KEY}"
ROOT = "SELECT root FROM rosters WHERE space = ? AND shelf = ? AND owner = ? AND holder = ? AND place = ? LIMIT 1"
_SET_EXPIRY = "UPDATE rosters SET expires_at = ? WHERE id = ?"
ADD_MEMBER = f"{MEMBERS.insert} ON CONFLICT DO NOTHING"
_LISTING = """
    SELECT rosters.name FROM members CROSS JOIN rosters ON rosters.id = members.roster
    WHERE members.root = ? AND members.member = ? AND rosters.expires_at > ?
"""


class SqliteRosters(Tables):
    async def add_members(self, key: Key, members: Sequence[str], *, now: int, expires_at: int) -> int:
        return await self._group_commit.write(self._add_members, key, members, now, expires_at)

    async def listing(self, key: Key, members: Sequence[str], *, now: int) -> dict[str, set[str]]:
        return await self._group_commit.read(self._listing, key, members, now)

    async def drop(self, keys: Sequence[Key], *, now: int) -> None:
        await self._group_commit.write(self._drop, keys)

    def _add_members(self, key: Key, members: Sequence[str], now: int, expires_at: int) -> int:
        "".join(members).encode()  # raises for text that cannot be stored, before anything is written
        connection = self._group_commit.connection
        row = connection.execute(_FIND, self._namespace.params(key)).fetchone()
        if row is not None and row[2] <= now:
            ROSTERS.bury(connection, row[0], row[1])
            row = None
        if row is None:
            row = self._create(key, expires_at)
        elif row[2] < expires_at:
            connection.execute(_SET_EXPIRY, (expires_at, row[0]))
        id, root, _ = row
        # In index order: with a million members, any other order takes twice as long.
        return connection.executemany(ADD_MEMBER, [(root, member, id) for member in sorted(members)]).rowcount

    def _create(self, key: Key, expires_at: int) -> tuple[int, int, int]:
        id = self._namespace.next_number()
        root = self._root(key) or id
        self._group_commit.connection.execute(ROSTERS.insert, (id, root, *self._namespace.params(key), expires_at))
        return id, root, expires_at

    def _root(self, key: Key) -> int | None:
        """Return the root of the rosters that share all parts of `key` but the name."""
        namespace, kind, owner, _, user, channel = self._namespace.params(key)
        row = self._group_commit.connection.execute(ROOT, (namespace, kind, owner, user, channel)).fetchone()
        return None if row is None else int(row[0])

    def _listing(self, key: Key, members: Sequence[str], now: int) -> dict[str, set[str]]:
        root, execute = self._root(key), self._group_commit.connection.execute
        if root is None:
            return {}
        found = {member: {name for (name,) in execute(_LISTING, (root, member, now))} for member in members}
        return {member: names for member, names in found.items() if names}

    def _drop(self, keys: Sequence[Key]) -> None:
        found = [self._group_commit.connection.execute(_FIND, self._namespace.params(key)).fetchone() for key in keys]
        for id, root, _ in {row for row in found if row is not None}:
            ROSTERS.bury(self._group_commit.connection, id, root)
