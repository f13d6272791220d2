"""Reads the rows of ballots and logs in bounded steps, and lists things by key."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Mapping
from typing import Any, Final

from emulator.core.keys import Key
from emulator.storage.merging import Fetch, Row
from emulator.storage.sqlite.connection import engine_errors
from emulator.storage.sqlite.namespace import Tables
from emulator.storage.sqlite.tables import BALLOTS, DOCUMENTS, LOGS, POOLS, Table

# The plus sign keeps SQLite from using the index by expiry.
_ALIVE: Final = "+expires_at > :now"
CONDITIONS: Final[Mapping[Table, str]] = {
    DOCUMENTS: _ALIVE,
    BALLOTS: _ALIVE,
    LOGS: f"EXISTS (SELECT 1 FROM items WHERE log = logs.id AND {_ALIVE})",
    POOLS: f"{_ALIVE} AND list IS NOT NULL",
}
"""By table: whether a row is a live thing."""
_BY_CHANNEL: Final = "channel, name, user"


def fetch_from(
    connection: sqlite3.Connection, same_time: str, later: str, params: Mapping[str, int], start: tuple[int, int]
) -> Fetch:
    """Return what reads rows in the order of their first two columns, a time and a number, after `start`.

    As one query, SQLite would scan all earlier rows of the same time again. So `same_time` selects those of the time
    `:at` after `:number`, and `later` those of later times.
    """

    async def fetch(size: int) -> tuple[list[Row], bool]:
        nonlocal start
        at, number = start
        rows: list[Row] = []
        with engine_errors():
            for statement in (same_time, later):
                position = {"at": at, "number": number, "size": size - len(rows)}
                rows += connection.execute(statement, {**params, **position}).fetchall()
        if rows:
            start = rows[-1][:2]
        return rows, len(rows) == size

    return fetch


def page_of(
    table: Table, columns: str, equal: Mapping[str, object], order: str, after: Key | None, matching: str
) -> tuple[str, dict[str, object]]:
    """Return the statement that selects a page of live things in an order, and its parameters but `now` and `limit`.

    `equal` has the values of columns, `None` for any. `matching` is a text in the name, channel or user.
    """
    params = {column: value for column, value in equal.items() if value is not None}
    conditions = ["space = :space", CONDITIONS[table], *(f"{column} = :{column}" for column in params)]
    if after:
        start = [column for column in order.split(", ") if column not in params]
        conditions.append(f"({', '.join(start)}) > ({', '.join(f':after_{column}' for column in start)})")
        params |= {f"after_{column}": getattr(after, column) for column in start}
    if matching:
        conditions.append("instr(name || char(10) || channel || char(10) || user, :matching)")
        params["matching"] = matching
    statement = f"SELECT {columns} FROM {table.name} WHERE {' AND '.join(conditions)} ORDER BY {order} LIMIT :limit"
    return statement, params


class Listings(Tables):
    """Base of the data types that list their things by channel."""

    async def _listing(
        self,
        table: Table,
        columns: str,
        counts: str,
        group: Key,
        *,
        now: int,
        limit: int,
        after: Key | None,
        matching: str,
    ) -> list[tuple[Key, tuple[Any, ...]]]:
        """Return up to `limit` things of `group` after `after`: their keys, other columns, and what `counts` selects.

        `columns` begins with `KEY`. `counts` is a statement for one thing, `:id`, and runs in a step of its own.
        """
        equal = {"kind": group.kind, "owner": group.owner, "channel": group.channel}
        page, params = page_of(table, f"id, {columns}", equal, _BY_CHANNEL, after, matching)
        found = []
        for id, *row in await self._select(page, **params, now=now, limit=limit):
            (counted,) = await self._select(counts, id=id, now=now)
            found.append((Key(*row[:5]), (*row[5:], *counted)))
            await asyncio.sleep(0)
        return found
