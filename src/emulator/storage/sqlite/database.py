"""One database, which the engines of all its namespaces share: a connection, commits, checkpoints, a watch of the file.

A checkpoint copies the write-ahead log into the file in a thread, so that the event loop does not wait for the disk.
"""

from __future__ import annotations

import asyncio
import logging
import sqlite3
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress

from emulator.core.errors import EngineError
from emulator.storage.sqlite.connection import connect, describe, finished_in_thread
from emulator.storage.sqlite.files.temporary import temporary_file
from emulator.storage.sqlite.group_commit import GroupCommit
from emulator.storage.sqlite.namespace import Numbers
from emulator.storage.sqlite.schema import empty_database

INTERVAL = 0.25
"""Seconds between two checks for new commits, and whether the file is in place."""
_AUTOCHECKPOINT = 400_000
"""Pages in the log at which SQLite copies the rest of it during a commit, so that it starts over."""
_log = logging.getLogger("emulator.engines")


class Checkpoints:
    """Copies the write-ahead log into the database file, in a thread with its own connection."""

    def __init__(self, group_commit: GroupCommit) -> None:
        self._group_commit = group_commit
        self._connection: sqlite3.Connection | None = None
        self._task: asyncio.Task[None] | None = None
        self._copying = asyncio.Lock()
        self._is_failing = False
        """Whether the latest copy failed."""

    async def open(self, synchronous: str) -> None:
        """Start copying the log in the background."""
        self._group_commit.connection.execute(f"PRAGMA wal_autocheckpoint = {_AUTOCHECKPOINT}")
        self._connection = await connect(self._group_commit.path, synchronous=synchronous, check_same_thread=False)
        self._task = asyncio.create_task(self._run(self._connection))

    async def close(self) -> None:
        """Stop copying the log. SQLite copies the rest when the last connection closes."""
        if self._task is None or self._connection is None:
            return
        self._task.cancel()
        with suppress(asyncio.CancelledError):
            await self._task
        self._connection.close()
        self._task = self._connection = None

    async def copy_log_now(self) -> None:
        """Checkpoint the log now, so that it starts over and stays short. The caller writes much, and waits for this.

        Other writers may go on.
        """
        if self._connection is not None:
            for _ in range(2):  # the second copies the few writes made during the first
                await self._copy(self._connection)

    async def _run(self, connection: sqlite3.Connection) -> None:
        seen = self._group_commit.commits
        while True:
            await asyncio.sleep(INTERVAL)
            self._group_commit.watch_files()
            if seen != self._group_commit.commits:
                seen = self._group_commit.commits
                await self._copy(connection)

    async def _copy(self, connection: sqlite3.Connection) -> None:
        """Copy the log into the file in a thread. The first of several failures is logged."""
        try:
            async with self._copying:
                await finished_in_thread(lambda: connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone())
        except sqlite3.Error as error:
            if not self._is_failing:
                _log.warning("cannot copy the write-ahead log into the file: %s", describe(error))
            self._is_failing = True
        else:
            self._is_failing = False


class Database:
    """A file. With `path` `None` it is a temporary one, which ends when it closes.

    With `awaits_disk`, a commit waits for the disk, so that not even a power cut loses data. No other process may write
    to the file: see `files/locks.py`.
    """

    def __init__(self, path: str | None, *, awaits_disk: bool) -> None:
        self.path = path
        self._synchronous = "OFF" if path is None else "FULL" if awaits_disk else "NORMAL"
        self.group_commit = GroupCommit()
        self.numbers = Numbers(self.group_commit)
        self.checkpoints = Checkpoints(self.group_commit)
        self._users = 0
        self._changing = asyncio.Lock()
        self._in_use: set[str] = set()
        self._stack = AsyncExitStack()

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[None]:
        """Keep the database open during the block: the first block opens it, and the end of the last closes it."""
        async with self._changing:
            if not self._users:
                await self._open()
            self._users += 1
        try:
            yield
        finally:
            async with self._changing:
                self._users -= 1
                if not self._users:
                    await self._stack.aclose()

    @asynccontextmanager
    async def namespace(self, name: str) -> AsyncIterator[None]:
        """Use a namespace during the block.

        Raises `EngineError` if another engine uses it, because each engine has its own caches.
        """
        if name in self._in_use:
            raise EngineError(f"the namespace {name!r} is open already")
        self._in_use.add(name)
        try:
            async with self.opened():
                yield
        finally:
            self._in_use.discard(name)

    async def _open(self) -> None:
        async with AsyncExitStack() as stack:
            path = self.path or stack.enter_context(temporary_file(empty_database()))
            await self.group_commit.open(path, self._synchronous)
            stack.callback(self.group_commit.close)
            await self.checkpoints.open(self._synchronous)
            stack.push_async_callback(self.checkpoints.close)
            self.group_commit.add_caches([self.numbers.clear])
            self._stack = stack.pop_all()
