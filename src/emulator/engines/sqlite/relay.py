"""Messages between the processes that share a file: each is a row, and the others look for new rows."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress

from emulator.engines.base import Key
from emulator.engines.sqlite.group_commit import GroupCommit
from emulator.engines.sqlite.namespace_ids import KEY_COLUMNS, NamespaceIds
from emulator.errors import EngineError

LOOK_EVERY = 0.05
"""Seconds between two looks; asking whether anybody wrote at all costs some microseconds."""
KEPT = 2_000
"""Rows that stay for those who have not looked yet."""
_AT_ONCE = 100
"""Messages handed out between two returns to the event loop; what they write to one socket leaves together."""

_SAY = f"INSERT INTO messages (space, sender, body, {KEY_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
_TRIM = "DELETE FROM messages WHERE number <= ?"
_NEWEST = "SELECT coalesce(max(number), 0) FROM messages"
_SINCE = f"""
    SELECT number, sender, body, {KEY_COLUMNS} FROM messages WHERE number > ? AND space IN (?, ?) ORDER BY number
"""
_log = logging.getLogger("emulator.engines")


class SqliteRelay:
    def __init__(self, group_commit: GroupCommit, namespace: NamespaceIds, sender: str) -> None:
        self._group_commit = group_commit
        self._namespace = namespace
        self._sender = sender
        self._deliver: list[Callable[[Key, bytes], None]] = []
        self._seen = 0
        self._seen_in = 0
        """The number that the namespace had at the last look. What was said under it before a reset is still news."""
        self._looking: asyncio.Task[None] | None = None

    @property
    def is_alone(self) -> bool:
        return self._group_commit.path is None

    def listen(self, deliver: Callable[[Key, bytes], None]) -> None:
        self._deliver.append(deliver)

    async def publish(self, topic: Key, message: bytes) -> None:
        if self.is_alone:
            _ = self._group_commit.connection  # a closed engine raises, as it does when the message is to be written
        else:
            await self._group_commit.write(self._say, topic, message)
        self._hand_out(topic, message)

    async def open(self) -> None:
        if not self.is_alone:
            self._seen = await self._group_commit.read(self._newest)
            self._looking = asyncio.create_task(self._look())

    async def close(self) -> None:
        if self._looking is not None:
            self._looking.cancel()
            with suppress(asyncio.CancelledError):
                await self._looking
            self._looking = None

    def _hand_out(self, topic: Key, message: bytes) -> None:
        for deliver in self._deliver:
            deliver(topic, message)

    def _say(self, topic: Key, message: bytes) -> None:
        connection = self._group_commit.connection
        number = connection.execute(_SAY, (self._namespace.id, self._sender, message, *topic)).lastrowid or 0
        connection.execute(_TRIM, (number - KEPT,))

    def _newest(self) -> int:
        self._seen_in = self._namespace.id
        (number,) = self._group_commit.connection.execute(_NEWEST).fetchone()
        return int(number)

    async def _look(self) -> None:
        failing = False
        version = None
        while True:
            await asyncio.sleep(LOOK_EVERY)
            try:
                if (now := self._group_commit.version()) == version:
                    continue
                news = await self._group_commit.read(self._news)
                for count, (number, sender, body, *key) in enumerate(news, 1):
                    self._seen = number
                    if sender != self._sender:
                        self._hand_out(Key(*key), body)
                    if count % _AT_ONCE == 0:
                        await asyncio.sleep(0)
                if failing:
                    _log.info("messages of other processes are read again")
                version, failing = now, False
            except EngineError as error:
                if not failing:
                    _log.warning("messages of other processes cannot be read for now: %s", error)
                failing = True

    def _news(self) -> list[tuple[int, str, bytes, str, str, str, str, str]]:
        space = self._namespace.id
        rows = self._group_commit.connection.execute(_SINCE, (self._seen, self._seen_in, space)).fetchall()
        self._seen_in = space
        return rows
