"""Copies the write-ahead log into the file in a thread, so that the event loop does not wait for the disk."""

from __future__ import annotations

import asyncio
import logging
import sqlite3
from contextlib import suppress

from emulator.engines.sqlite.connection import connect
from emulator.engines.sqlite.group_commit import GroupCommit

INTERVAL = 0.25
"""Seconds between two checks for new commits, and of the files."""
AUTOCHECKPOINT = 400_000
"""Pages in the log at which SQLite copies it during a commit, in case the thread has not."""
_log = logging.getLogger("emulator.engines")


class Checkpoints:
    """Uses a connection of its own; SQLite releases the GIL while it waits for the disk."""

    def __init__(self, group_commit: GroupCommit) -> None:
        self._group_commit = group_commit
        self._connection: sqlite3.Connection | None = None
        self._task: asyncio.Task[None] | None = None
        self._copying = asyncio.Lock()

    async def open(self) -> None:
        """Start copying, if the data is in a file."""
        if self._group_commit.path is None:
            return
        self._group_commit.connection.execute(f"PRAGMA wal_autocheckpoint = {AUTOCHECKPOINT}")
        self._connection = await connect(self._group_commit.path, check_same_thread=False)
        self._task = asyncio.create_task(self._run(self._connection))

    async def close(self) -> None:
        """Stop copying. SQLite copies the rest when the last connection closes."""
        if self._task is None or self._connection is None:
            return
        self._task.cancel()
        with suppress(asyncio.CancelledError):
            await self._task
        if self._group_commit.check_files():
            await self._rescue(self._connection)
        self._connection.close()
        self._task = self._connection = None

    async def catch_up(self) -> None:
        """Copy the log now, so that it begins anew and stays short. The caller writes much, and waits meanwhile.

        Other writers may go on.
        """
        if self._connection is not None:
            for _ in range(2):  # the second copies what was written during the first, which is little
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
            rescuing = asyncio.ensure_future(asyncio.to_thread(self._group_commit.corruption.rescue_with, connection))
            try:
                await asyncio.shield(rescuing)
            except asyncio.CancelledError:
                await rescuing
                raise

    async def _copy(self, connection: sqlite3.Connection) -> sqlite3.Error | None:
        """Copy the log in a thread; return the error, if there was one."""
        async with self._copying:
            # Shielded, so that the thread is done with the connection before it is closed.
            copying = asyncio.ensure_future(asyncio.to_thread(_copy_log, connection))
            try:
                return await asyncio.shield(copying)
            except asyncio.CancelledError:
                await copying
                raise


def _copy_log(connection: sqlite3.Connection) -> sqlite3.Error | None:
    """Return the error, if there was one."""
    try:
        connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
    except sqlite3.Error as error:
        return error
    return None
