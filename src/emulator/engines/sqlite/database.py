"""One database, which the engines of all its namespaces share: a connection, commits, checkpoints and messages.

A checkpoint copies the write-ahead log into the file in a thread, so that the event loop does not wait for the disk.
"""

from __future__ import annotations

import asyncio
import logging
import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from functools import partial

from emulator.engines.engine import Upgrades
from emulator.engines.sqlite.connection import connect, finished_in_thread
from emulator.engines.sqlite.group_commit import GroupCommit
from emulator.engines.sqlite.namespace import Numbers
from emulator.engines.sqlite.relay import Messages
from emulator.errors import EngineError

INTERVAL = 0.25
"""Seconds between two checks for new commits, and of the files."""
AUTOCHECKPOINT = 400_000
"""Pages in the log at which SQLite copies the rest of it during a commit, so that it starts over."""
_SMALL_REST = 20_000
"""Pages that a commit may copy. With more, as while a reader needs the log, each commit would sort them for 70 ms."""
_log = logging.getLogger("emulator.engines")


class Checkpoints:
    """Copies the write-ahead log into the database file, in a thread with its own connection."""

    def __init__(self, group_commit: GroupCommit) -> None:
        self._group_commit = group_commit
        self._connection: sqlite3.Connection | None = None
        self._task: asyncio.Task[None] | None = None
        self._copying = asyncio.Lock()

    async def open(self) -> None:
        """Start copying the log in the background, if the data is in a file."""
        if self._group_commit.path is None:
            return
        self._let_commits_copy(rest=0)
        self._connection = await connect(self._group_commit.path, check_same_thread=False)
        self._task = asyncio.create_task(self._run(self._connection))

    async def close(self) -> None:
        """Stop copying the log. SQLite copies the rest when the last connection closes."""
        if self._task is None or self._connection is None:
            return
        self._task.cancel()
        with suppress(asyncio.CancelledError):
            await self._task
        if self._group_commit.check_files():
            await self._rescue(self._connection)
        self._connection.close()
        self._task = self._connection = None

    async def copy_log_now(self) -> None:
        """Checkpoint the log now, so that it starts over and stays short. The caller writes much, and waits for this.

        Other writers may go on.
        """
        if self._connection is not None:
            for _ in range(2):  # the second copies the few writes made during the first
                self._group_commit.corruption.note(await self._copy(self._connection))

    async def _run(self, connection: sqlite3.Connection) -> None:
        seen = self._group_commit.commits
        is_failing = False
        while True:
            await asyncio.sleep(INTERVAL)
            self._group_commit.corruption.check_marker()
            if self._group_commit.check_files():
                await self._rescue(connection)
                continue
            if seen == self._group_commit.commits:
                continue
            seen = self._group_commit.commits
            error = await self._copy(connection)
            self._group_commit.corruption.note(error)
            if error and not is_failing:
                _log.warning("cannot copy the write-ahead log into the file: %s", error)
            is_failing = error is not None

    async def _rescue(self, connection: sqlite3.Connection) -> None:
        async with self._copying:
            await finished_in_thread(partial(self._group_commit.corruption.rescue_with, connection))

    async def _copy(self, connection: sqlite3.Connection) -> sqlite3.Error | None:
        """Copy the log into the file in a thread; return the error, or `None`."""
        async with self._copying:
            rest = await finished_in_thread(partial(_copy_log, connection))
        if isinstance(rest, sqlite3.Error):
            return rest
        self._let_commits_copy(rest)
        return None

    def _let_commits_copy(self, rest: int) -> None:
        """Let commits copy a log that is long, unless so many of its pages are left to copy."""
        limit = AUTOCHECKPOINT if rest <= _SMALL_REST else 0
        self._group_commit.connection.execute(f"PRAGMA wal_autocheckpoint = {limit}")


def _copy_log(connection: sqlite3.Connection) -> int | sqlite3.Error:
    """Copy the log into the file; return how many of its pages are left, because a reader needs them, or the error."""
    try:
        _, pages, copied = connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
    except sqlite3.Error as error:
        return error
    return int(pages - copied)


class Database:
    """A file, or with `path` `None` a database in memory, which ends when it closes.

    With `awaits_disk`, a commit waits for the disk, so that not even a power cut loses data. `is_alone` states that no
    other process uses the namespaces of the file.
    """

    def __init__(self, path: str | None, *, awaits_disk: bool, is_alone: bool, upgrades: Upgrades) -> None:
        self.path, self.is_alone = path, is_alone
        self.group_commit = GroupCommit(path, awaits_disk=awaits_disk, upgrades=upgrades)
        self.numbers = Numbers(self.group_commit)
        self.checkpoints = Checkpoints(self.group_commit)
        self.messages = Messages(self.group_commit, is_local=is_alone or path is None)
        self._users = 0
        self._changing = asyncio.Lock()
        self._in_use: set[str] = set()

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
                    await self._close()

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
        await self.group_commit.open()
        try:
            with self.group_commit.corruption.opening():
                await self.messages.open()
                await self.checkpoints.open()
        except BaseException:
            await self.messages.close()
            self.group_commit.close()
            raise
        self.group_commit.add_caches([self.numbers])

    async def _close(self) -> None:
        await self.messages.close()
        await self.checkpoints.close()
        self.group_commit.close()
