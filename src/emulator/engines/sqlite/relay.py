"""Messages between the processes that share a file: each is a row, and the other processes poll for new rows."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress

from emulator.engines.base import Key
from emulator.engines.sqlite.group_commit import GroupCommit
from emulator.engines.sqlite.namespace_ids import KEY_COLUMNS, NamespaceIds
from emulator.errors import EngineError

POLL_INTERVAL = 0.05
"""Seconds between two polls. If nothing was written, a poll takes microseconds."""
MAX_ROWS = 2_000
"""Messages that stay in the table for processes that have not read them yet."""
_AT_ONCE = 100
"""Messages read and delivered between two returns to the event loop; those for one socket are sent together."""

_INSERT = f"INSERT INTO messages (space, sender, body, {KEY_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
_TRIM = "DELETE FROM messages WHERE number <= ?"
_NEWEST = "SELECT coalesce(max(number), 0) FROM messages"
_SINCE = f"""
    SELECT number, sender, body, {KEY_COLUMNS} FROM messages WHERE number > ? AND space IN (?, ?)
    ORDER BY number LIMIT ?
"""
_log = logging.getLogger("emulator.engines")


class SqliteRelay:
    def __init__(self, group_commit: GroupCommit, namespace: NamespaceIds, sender: str, *, is_local: bool) -> None:
        self.is_local = is_local
        self._group_commit = group_commit
        self._namespace = namespace
        self._sender = sender
        self._listeners: list[Callable[[Key, bytes], None]] = []
        self._seen = 0
        self._previous_id = 0
        """The id of the namespace at the last poll. Messages from before a reset have it, and still count."""
        self._task: asyncio.Task[None] | None = None

    def listen(self, deliver: Callable[[Key, bytes], None]) -> None:
        self._listeners.append(deliver)

    async def publish(self, topic: Key, message: bytes) -> None:
        if self.is_local:
            _ = self._group_commit.connection  # raises if the engine is closed, as a write does
        else:
            await self._group_commit.write(self._insert, topic, message)
        self._deliver(topic, message)

    async def open(self) -> None:
        if not self.is_local:
            self._seen = await self._group_commit.read(self._newest)
            self._task = asyncio.create_task(self._poll())

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task
            self._task = None

    def _deliver(self, topic: Key, message: bytes) -> None:
        for deliver in self._listeners:
            deliver(topic, message)

    def _insert(self, topic: Key, message: bytes) -> None:
        connection = self._group_commit.connection
        number = connection.execute(_INSERT, (self._namespace.id, self._sender, message, *topic)).lastrowid or 0
        connection.execute(_TRIM, (number - MAX_ROWS,))

    def _newest(self) -> int:
        self._previous_id = self._namespace.id
        (number,) = self._group_commit.connection.execute(_NEWEST).fetchone()
        return int(number)

    async def _poll(self) -> None:
        is_failing = False
        version = None
        while True:
            await asyncio.sleep(POLL_INTERVAL)
            try:
                if (current := self._group_commit.version()) == version:
                    continue
                while rows := await self._group_commit.read(self._new_rows):
                    for number, sender, body, *key in rows:
                        self._seen = number
                        if sender != self._sender:
                            self._deliver(Key(*key), body)
                    await asyncio.sleep(0)
                if is_failing:
                    _log.info("receiving messages from other processes again")
                version, is_failing = current, False
            except EngineError as error:
                if not is_failing:
                    _log.warning("cannot receive messages from other processes: %s", error)
                is_failing = True

    def _new_rows(self) -> list[tuple[int, str, bytes, str, str, str, str, str]]:
        id = self._namespace.id
        args = (self._seen, self._previous_id, id, _AT_ONCE)
        rows = self._group_commit.connection.execute(_SINCE, args).fetchall()
        if len(rows) < _AT_ONCE:
            self._previous_id = id
        return rows
