"""Lists things by key."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from functools import partial
from typing import Any

from emulator.core.keys import Key
from emulator.storage.merging import Row
from emulator.storage.shapes import ListedBallot, ListedLog
from emulator.storage.sqlite.namespace import Tables
from emulator.storage.sqlite.tables import KEY, LISTED, LOGS, Table

# The plus sign keeps SQLite from using the index by expiry.
_ALIVE = "+expires_at > :now"
CONDITIONS: Mapping[Table, str] = {
    **{table: f"{_ALIVE} AND {table.is_listed}" for table in LISTED},
    LOGS: f"EXISTS (SELECT 1 FROM items WHERE log = logs.id AND {_ALIVE})",
}
"""By table: whether a row is a live thing."""
_MATCHES = "instr(name || char(10) || channel || char(10) || user, :matching)"
_BY_CHANNEL = "channel, name, user"


class Listings(Tables):
    """Base of what lists things by key."""

    async def _page(
        self, table: Table, columns: str, equal: Mapping[str, object], order: str, after: Key | None, **params: object
    ) -> list[Row]:
        """Return these columns of live things, in an order and after `after`.

        `equal` has the values of columns, `None` for any. The other parameters are `now`, `limit`, and `matching`: a
        text in the name, channel or user.
        """
        equal = {column: value for column, value in equal.items() if value is not None}
        conditions = ["space = :space", CONDITIONS[table], *(f"{column} = :{column}" for column in equal), _MATCHES]
        if after:
            start = [column for column in order.split(", ") if column not in equal]
            conditions.append(f"({', '.join(start)}) > ({', '.join(f':after_{column}' for column in start)})")
            params |= {f"after_{column}": getattr(after, column) for column in start}
        statement = f"SELECT {columns} FROM {table.name} WHERE {' AND '.join(conditions)} ORDER BY {order} LIMIT :limit"
        return await self._select(statement, **equal, **params)


class GroupListings(Listings):
    """Base of what lists ballots or logs."""

    _table: Table
    _description: str
    """A statement about one thing, `:id`, which runs in a step of its own."""
    _listed: type[ListedBallot | ListedLog]
    """Takes the key of a thing, and the columns of its description."""

    async def listing(
        self, group: Key, *, now: int, limit: int, after: Key | None = None, matching: str = ""
    ) -> list[Any]:
        equal = {"kind": group.kind, "owner": group.owner, "channel": group.channel}
        found: list[Any] = []
        page = partial(self._page, self._table, f"id, {KEY}", equal, _BY_CHANNEL, now=now, matching=matching)
        while len(found) < limit and (rows := await page(after, limit=limit - len(found))):
            for id, *key in rows:  # one that is deleted meanwhile is not described, and another is read for it
                for row in await self._select(self._description, id=id, now=now):
                    found.append(self._listed(Key(*key), *row))
                await asyncio.sleep(0)
            after = Key(*key)
        return found
