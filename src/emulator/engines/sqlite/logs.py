"""Logs on SQLite: a row per entry. Entries never change, so a reading is bound by the number at its start."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence

from emulator.engines.base import Item, Key, Span
from emulator.engines.sqlite.space import KEY, KEY_EVERYWHERE, Space
from emulator.engines.sqlite.turns import Turns

PAGE = 1000

_LOG = f"SELECT id FROM logs WHERE {KEY}"
_LOGS = f"SELECT id FROM logs WHERE {KEY_EVERYWHERE}"
_START = "INSERT INTO logs (id, space, shelf, owner, name, holder, place) VALUES (?, ?, ?, ?, ?, ?, ?)"
_APPEND = "INSERT INTO items (number, log, space, at, expires_at, value) VALUES (?, ?, ?, ?, ?, ?)"
_LATEST = "SELECT at FROM items WHERE log = ? AND expires_at > ? ORDER BY at DESC LIMIT 1"


class SqliteLogs:
    def __init__(self, turns: Turns, space: Space) -> None:
        self._turns = turns
        self._space = space

    async def append(self, key: Key, value: bytes, *, now: int, expires_at: int) -> None:
        await self._turns.write(self._append, key, value, now, expires_at)

    async def read(self, key: Key, *, now: int, since: int = 0) -> Span:
        raise NotImplementedError

    def _append(self, key: Key, value: bytes, now: int, expires_at: int) -> None:
        connection, place = self._turns.connection, self._space.of(key)
        row = connection.execute(_LOG, place).fetchone()
        if row is None:
            row = (self._space.number(),)
            connection.execute(_START, (*row, *place))
        connection.execute(_APPEND, (self._space.number(), *row, self._space.id, now, expires_at, value))
