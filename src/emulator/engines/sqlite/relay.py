"""Messages between the processes that share a file: each is a row, and the other processes poll for new rows."""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections.abc import Callable
from contextlib import suppress

from emulator.engines.shapes import Key
from emulator.engines.sqlite.group_commit import GroupCommit
from emulator.engines.sqlite.namespace import Namespace, Tables
from emulator.engines.sqlite.table_list import KEY_COLUMNS

POLL_INTERVAL = 0.05
"""Seconds between two polls. If nothing was written, a poll takes microseconds."""
MAX_ROWS = 2_000
"""Messages that stay in the table for processes that have not read them yet."""
_AT_ONCE = 100
"""Messages read and delivered between two returns to the event loop; those for one socket are sent together."""

_INSERT = f"INSERT INTO messages (space, sender, body, {KEY_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
_TRIM = "DELETE FROM messages WHERE number <= ?"
_NEWEST = "SELECT coalesce(max(number), 0) FROM messages"
_SINCE = f"SELECT number, space, sender, body, {KEY_COLUMNS} FROM messages WHERE number > ? ORDER BY number LIMIT ?"
_SPACES = "SELECT space, namespace FROM spaces"
_log = logging.getLogger("emulator.engines")

Deliver = Callable[[Key, bytes], None]


class Messages:
    """The messages of all namespaces of a database. With `is_local`, no other process sends or reads any."""

    def __init__(self, group_commit: GroupCommit, *, is_local: bool) -> None:
        self.is_local = is_local
        self._group_commit = group_commit
        self._sender = uuid.uuid4().hex
        self._receivers: dict[str, Deliver] = {}
        """By namespace."""
        self._seen = 0
        self._spaces: dict[int, str] = {}
        self._earlier_spaces: dict[int, str] = {}
        """Before the last change. Messages from before a reset have such an id, and still count."""
        self._task: asyncio.Task[None] | None = None

    def receive(self, namespace: str, deliver: Deliver) -> None:
        """Call `deliver` for the messages of other processes, until `ignore`."""
        self._receivers[namespace] = deliver

    def ignore(self, namespace: str) -> None:
        self._receivers.pop(namespace, None)

    def insert(self, space: int, topic: Key, message: bytes) -> None:
        """Store a message for the other processes; only inside a write."""
        connection = self._group_commit.connection
        number = connection.execute(_INSERT, (space, self._sender, message, *topic)).lastrowid or 0
        connection.execute(_TRIM, (number - MAX_ROWS,))

    async def open(self) -> None:
        if not self.is_local:
            self._seen = await self._group_commit.read(self._newest_number)
            self._task = asyncio.create_task(self._poll())

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task
            self._task = None

    def _newest_number(self) -> int:
        self._find_spaces()
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
                    for number, space, sender, body, *key in rows:
                        self._seen = number
                        namespace = self._spaces.get(space) or self._earlier_spaces.get(space, "")
                        if sender != self._sender and (deliver := self._receivers.get(namespace)) is not None:
                            deliver(Key(*key), body)
                    await asyncio.sleep(0)
                if is_failing:
                    _log.info("receiving messages from other processes again")
                version, is_failing = current, False
            except Exception as error:  # after any error it must try again, or messages would be lost from then on
                if not is_failing:
                    _log.warning("cannot receive messages from other processes: %s", error)
                is_failing = True

    def _new_rows(self) -> list[tuple[int, int, str, bytes, str, str, str, str, str]]:
        rows = self._group_commit.connection.execute(_SINCE, (self._seen, _AT_ONCE)).fetchall()
        if rows:
            self._find_spaces()
        return rows

    def _find_spaces(self) -> None:
        spaces = dict(self._group_commit.connection.execute(_SPACES).fetchall())
        if spaces != self._spaces:
            self._earlier_spaces, self._spaces = self._spaces, spaces


class SqliteRelay(Tables):
    """The relay of one namespace."""

    def __init__(self, messages: Messages, namespace: Namespace, name: str) -> None:
        super().__init__(namespace)
        self.is_local = messages.is_local
        self._messages = messages
        self._name = name
        self._listeners: list[Deliver] = []

    def listen(self, deliver: Deliver) -> None:
        self._listeners.append(deliver)

    def ignore(self, deliver: Deliver) -> None:
        self._listeners.remove(deliver)

    async def publish(self, topic: Key, message: bytes) -> None:
        if self.is_local:
            self._namespace.check_open()
        else:
            await self._group_commit.write(self._insert, topic, message)
        self._deliver(topic, message)

    def open(self) -> None:
        self._messages.receive(self._name, self._deliver)

    def close(self) -> None:
        self._messages.ignore(self._name)

    def _deliver(self, topic: Key, message: bytes) -> None:
        for deliver in self._listeners:
            deliver(topic, message)

    def _insert(self, topic: Key, message: bytes) -> None:
        self._messages.insert(self._namespace.id, topic, message)
