"""Copies the write-ahead log into the file in a thread, so that the event loop does not wait for the disk."""

from __future__ import annotations

import asyncio
import logging
import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from emulator.storage.sqlite.connection import CLOSED, connect, describe, finished_in_thread
from emulator.storage.sqlite.group_commit import GroupCommit

INTERVAL = 0.25
"""Seconds between two checks for new commits, and whether the file is in place."""
_AUTOCHECKPOINT = 400_000
"""Pages in the log at which SQLite copies the rest of it during a commit, so that it starts over."""
_log = logging.getLogger("emulator.engines")


class Checkpoints:
    """Copies the log while it is open, with its own connection, and watches whether the file is in place."""

    def __init__(self, group_commit: GroupCommit) -> None:
        self._group_commit = group_commit
        self._connection: sqlite3.Connection = CLOSED
        self._copying = asyncio.Lock()
        self._is_failing = False
        """Whether the latest copy failed."""

    @asynccontextmanager
    async def run(self, synchronous: str) -> AsyncIterator[None]:
        """Copy the log in the background. SQLite copies the rest when the last connection closes."""
        self._group_commit.connection.execute(f"PRAGMA wal_autocheckpoint = {_AUTOCHECKPOINT}")
        self._connection = await connect(self._group_commit.path, synchronous=synchronous, check_same_thread=False)
        copying = asyncio.create_task(self._copy_often())
        try:
            yield
        finally:
            copying.cancel()
            with suppress(asyncio.CancelledError):
                await copying
            self._connection.close()
            self._connection = CLOSED

    async def copy_log_now(self) -> None:
        """Checkpoint the log now, so that it starts over and stays short. The caller writes much, and waits for this.

        Other writers may go on.
        """
        for _ in range(2):  # the second copies the few writes made during the first
            await self._copy()

    async def _copy_often(self) -> None:
        seen = self._group_commit.commits
        while True:
            await asyncio.sleep(INTERVAL)
            self._group_commit.watch_files()
            if seen != self._group_commit.commits:
                seen = self._group_commit.commits
                await self._copy()

    async def _copy(self) -> None:
        """Copy the log into the file in a thread. The first of several failures is logged."""
        try:
            async with self._copying:
                await finished_in_thread(lambda: self._connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone())
        except sqlite3.Error as error:
            if not self._is_failing:
                _log.warning("cannot copy the write-ahead log into the file: %s", describe(error))
            self._is_failing = True
        else:
            self._is_failing = False
