"""Pools on SQLite: one row per pool, from its first assignment to its drop or expiry, and one per handed-out item.

Rosters have one row per member, with an index that finds all rosters of a member.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from typing import NamedTuple

from emulator.core.keys import Key
from emulator.storage.merging import Row
from emulator.storage.pools import Assignment, Drawn, Holding, Limit, Progress, RosterInfo, Stock, writes_of_assignment
from emulator.storage.records import item_digest
from emulator.storage.sqlite.lists import SET_EXPIRY, Lists, split_chunks
from emulator.storage.sqlite.namespace import Tables, read_operation, write_operation
from emulator.storage.sqlite.tables import BY_KEY, LISTS, MEMBERS, POOLS, ROSTERS, SPENT, qualified_key

_LIVE = f"FROM pools WHERE {BY_KEY} AND list IS NOT NULL AND expires_at > ?"
_FIND_POOL = f"SELECT id, expires_at, list, note, family, position {_LIVE}"
_STOCK = f"SELECT note, {qualified_key('lists')} FROM (SELECT * {_LIVE}) AS found CROSS JOIN lists ON lists.id = list"
_LAST_HANDED = "(SELECT coalesce(max(ordinal), 0) FROM handed WHERE pool = pools.id)"
_SELECT_PROGRESS = f"""
    SELECT {_LAST_HANDED}, (SELECT coalesce(max(end), 0) FROM chunks WHERE list = pools.list) - position {_LIVE}
"""
_ASSIGN = "UPDATE pools SET list = ?, position = ?, note = ?, expires_at = ? WHERE id = ?"
_SET_POSITION = "UPDATE pools SET position = ? WHERE id = ?"
_ADVANCE = "UPDATE pools SET position = position + 1 WHERE id = ?"
_DROP_POOL = "UPDATE pools SET list = NULL, note = x'' WHERE id = ?"
_COUNT_HANDED = "SELECT count(*) FROM handed WHERE pool = ? AND user = ?"
HAND_OUT = "INSERT INTO handed SELECT ?1, coalesce(max(ordinal), 0) + 1, ?2, ?3 FROM handed WHERE pool = ?1"
_ITEMS_OF_USER = f"""
    SELECT item, list FROM (SELECT id, list FROM pools WHERE {BY_KEY} AND expires_at > ?)
    CROSS JOIN handed ON pool = id AND user = ? ORDER BY id, ordinal
"""


class _Pool(NamedTuple):
    id: int
    expires_at: int
    list_id: int
    note: bytes
    family: int
    position: int
    """The position of the next item in the list."""


class SqlitePools(Lists):
    @write_operation
    def fill(self, source: Key, items: Sequence[str], *, now: int, expires_at: int) -> None:
        chunks = split_chunks(items)
        self._check_unused(source, now)
        to = self._live_or_new_list(source, now, expires_at)
        self._append_chunks(to.id, chunks)
        self._execute(SET_EXPIRY, max(expires_at, to.expires_at), to.id)

    @read_operation
    def items(self, source: Key, at: int, *, now: int) -> Sequence[str]:
        found = self._find_list(source, now)
        return [] if found is None else self._items_of_list(found.id, at)

    async def assign(
        self, keys: Sequence[Key], change: Assignment, *, now: int, expires_at: int, sizes: Mapping[Key, int] = {}
    ) -> bool:
        written = await self._assign(keys, change, now, expires_at, sizes)
        for key in written or ():
            while await self._skip_some(key, now):
                pass
        return written is not None

    @read_operation
    def counts(self, keys: Sequence[Key], *, now: int) -> dict[Key, Progress]:
        return {key: Progress(*counts) for key, counts in self._live_rows(_SELECT_PROGRESS, keys, now)}

    @write_operation
    def discard(self, sources: Sequence[Key], *, now: int) -> None:
        for source in sources:
            found = self._find_list(source)
            if found is not None and found.pool is None:
                self._remove_row(LISTS, found.id)

    async def draw(self, key: Key, user: str, *, limit: Limit, now: int, held: bool = False) -> Drawn:
        drawn = None
        while drawn is None:
            drawn = await self._try_draw(key, user, limit, now, held)
        return drawn

    @read_operation
    def held(self, keys: Sequence[Key], user: str, *, now: int) -> dict[Key, Holding]:
        return {key: holding for key in keys if (holding := self._holding_of_user(key, user, now)).items}

    @write_operation
    def drop(self, keys: Sequence[Key], *, now: int) -> dict[Key, int]:
        counts = {key: handed for key, (handed, _) in self._live_rows(_SELECT_PROGRESS, keys, now)}
        for key in keys:
            pool = self._find_pool(key)
            if pool is not None and counts.get(key):
                self._execute(_DROP_POOL, pool.id)
                self._remove_row(LISTS, pool.list_id)
            elif pool is not None:
                self._remove_pool(pool)
        return counts

    @write_operation
    def _assign(
        self, keys: Sequence[Key], change: Assignment, now: int, expires_at: int, sizes: Mapping[Key, int]
    ) -> list[Key] | None:
        """Return the pools written; `None`, and write nothing, if a list has fewer items than `sizes` has for it."""
        live = self._read_stocks(keys, now=now)
        written = writes_of_assignment(change, live, keys)
        for key, (source, _) in written.items():
            if key not in live or live[key].source != source:
                self._check_unused(source, now)
        for source, size in sizes.items():
            found = self._find_list(source, now)
            if size > (self._size_of_list(found.id) if found else 0):
                return None
        for key, (source, note) in written.items():
            pool = self._find_pool(key)
            if pool is not None and pool.expires_at <= now:
                self._remove_pool(pool)
                pool = None
            found = self._live_or_new_list(source, now, expires_at)
            end = max(expires_at, found.expires_at, pool.expires_at if pool else 0)
            if pool is None:
                self._add_row(POOLS, key, end, found.id, note, self._family_of(self._namespace.id, key))
            elif found.id == pool.list_id:
                self._execute(_ASSIGN, found.id, pool.position, note, end, pool.id)
            else:
                self._remove_row(LISTS, pool.list_id)
                self._execute(_ASSIGN, found.id, 0, note, end, pool.id)
            self._execute(SET_EXPIRY, end, found.id)
        return list(written)

    def _check_unused(self, source: Key, now: int) -> None:
        """Raise `ValueError` if a live pool uses this list."""
        found = self._find_list(source, now)
        if found is not None and found.pool is not None:
            raise ValueError(f"a pool uses this list: {source}")

    def _find_pool(self, key: Key, now: int = -1) -> _Pool | None:
        """Return the pool, unless it was dropped or has expired at `now`."""
        row = self._find_row(_FIND_POOL, key, now)
        return None if row is None else _Pool(*row)

    def _remove_pool(self, pool: _Pool) -> None:
        self._remove_row(POOLS, pool.id)
        self._remove_row(LISTS, pool.list_id)

    def _read_stocks(self, keys: Sequence[Key], *, now: int) -> dict[Key, Stock]:
        live = {}
        for key, (note, *source) in self._live_rows(_STOCK, keys, now):
            live[key] = Stock(Key(*source), note)
        return live

    stocks = read_operation(_read_stocks)

    def _live_rows(self, statement: str, keys: Sequence[Key], now: int) -> Iterator[tuple[Key, Row]]:
        """Yield the keys of live pools, each with the columns that `statement` selects."""
        for key in keys:
            row = self._find_row(statement, key, now)
            if row is not None:
                yield key, row

    @write_operation
    def _try_draw(self, key: Key, user: str, limit: Limit, now: int, held: bool) -> Drawn | None:
        """Return `None` if more items have to be skipped first, after other operations have run."""
        user.encode()  # raises for text that cannot be stored, before anything is written
        item, pool = None, self._find_pool(key, now)
        if pool is not None and self._execute(_COUNT_HANDED, pool.id, user).fetchone()[0] < limit(pool.note):
            item, has_more = self._next_item(pool)
            if has_more:
                return None
            if item is not None:
                self._execute(SPENT.insert, pool.family, item_digest(item))  # a constraint allows that once
                self._execute(HAND_OUT, pool.id, user, item)
                self._execute(_ADVANCE, pool.id)
        return Drawn(item, self._holding_of_user(key, user, now).items if held else ())

    def _next_item(self, pool: _Pool) -> tuple[str | None, bool]:
        """Move a pool past some spent items; return the next item or `None`, and whether there may be more to skip."""
        items = self._items_of_list(pool.list_id, pool.position, chunks=1)
        spent = 0
        while spent < len(items) and self._is_spent(pool.family, items[spent]):
            spent += 1
        if spent:
            self._execute(_SET_POSITION, pool.position + spent, pool.id)
        return (items[spent], False) if spent < len(items) else (None, bool(items))

    @write_operation
    def _skip_some(self, key: Key, now: int) -> bool:
        """Skip some spent items; return whether the next one may be spent too."""
        pool = self._find_pool(key, now)
        return pool is not None and self._next_item(pool)[1]

    def _holding_of_user(self, key: Key, user: str, now: int) -> Holding:
        rows = self._execute(_ITEMS_OF_USER, *self._namespace.key_params(key), now, user).fetchall()
        return Holding(tuple(item for item, _ in rows), sum(list_id is not None for _, list_id in rows))


_FIND_ROSTER = f"SELECT id, expires_at FROM rosters WHERE {BY_KEY}"
_GROUP = "space = ? AND kind = ? AND owner = ? AND channel = ? AND user = ?"
_SET_EXPIRY = "UPDATE rosters SET expires_at = ? WHERE id = ?"
_ANNOTATE = (
    f"UPDATE rosters SET note = ?, number = ?, expires_at = max(expires_at, ?) WHERE {BY_KEY} AND expires_at > ?"
)
_ADD_MEMBER = f"{MEMBERS.insert} ON CONFLICT DO NOTHING"
_FIND_BY_MEMBER = f"""
    SELECT number, id, name, note FROM members CROSS JOIN rosters ON id = roster
    WHERE member = ? AND {_GROUP} AND expires_at > ?
"""
_PAGE = 100
_ALL = f"SELECT name, note, expires_at FROM rosters WHERE {_GROUP} AND (name, 1) > (?, ?) ORDER BY name LIMIT {_PAGE}"


class SqliteRosters(Tables):
    @write_operation
    def add_members(self, key: Key, members: Sequence[str], *, now: int, expires_at: int) -> None:
        "".join(members).encode()  # raises for text that cannot be stored, before anything is written
        id, end = self._find_row(_FIND_ROSTER, key) or (None, 0)
        if id is not None and end <= now:
            self._remove_row(ROSTERS, id)
            id = None
        if id is None:
            id = self._add_row(ROSTERS, key, expires_at, b"", self.group_commit.next_number())
        elif end < expires_at:
            self._execute(_SET_EXPIRY, expires_at, id)
        # In index order: with a million members, any other order takes twice as long.
        self.group_commit.connection.executemany(_ADD_MEMBER, [(id, member) for member in sorted(members)])

    @write_operation
    def annotate(self, key: Key, note: bytes, *, now: int, expires_at: int) -> bool:
        number = self.group_commit.next_number()
        return bool(self._execute(_ANNOTATE, note, number, expires_at, *self._namespace.key_params(key), now).rowcount)

    @read_operation
    def listing(self, key: Key, members: Sequence[str], *, now: int) -> list[RosterInfo]:
        found: dict[tuple[int, int], RosterInfo] = {}
        for member in members:
            for number, id, name, note in self._execute(_FIND_BY_MEMBER, member, *self._group_params(key), now):
                found.setdefault((number, id), RosterInfo(name, note, [])).members.append(member)
        return [found[place] for place in sorted(found)]

    async def all(self, key: Key, *, now: int) -> AsyncIterator[Mapping[str, bytes]]:
        start = "", 0
        while rows := await self._select_page(key, start):
            start = rows[-1][0], 1
            yield {name: note for name, note, expires_at in rows if now < expires_at}

    @write_operation
    def drop(self, keys: Sequence[Key], *, now: int) -> None:
        for key in keys:
            if row := self._find_row(_FIND_ROSTER, key):
                self._remove_row(ROSTERS, row[0])

    @read_operation
    def _select_page(self, key: Key, start: tuple[str, int]) -> list[tuple[str, bytes, int]]:
        return self._execute(_ALL, *self._group_params(key), *start).fetchall()

    def _group_params(self, key: Key) -> tuple[object, ...]:
        space, kind, owner, _, channel, user = self._namespace.key_params(key)
        return space, kind, owner, channel, user
