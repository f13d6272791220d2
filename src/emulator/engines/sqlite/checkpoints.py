"""Copying the log into the file beside the event loop, which would stand still while the disk is waited for."""

from __future__ import annotations

import asyncio
import logging
import sqlite3
from contextlib import suppress

from emulator.engines.sqlite.group_commit import GroupCommit

EVERY = 0.25
"""Seconds between two looks whether something was written."""
ANYWAY = 400_000
"""Pages in the log at which SQLite copies it by itself, should nobody else have come to it."""
_log = logging.getLogger("emulator.engines")


class Checkpoints:
    """A connection of its own, used in a thread: SQLite lets other Python code run while it waits for the disk."""

    def __init__(self, group_commit: GroupCommit) -> None:
        self._group_commit = group_commit
        self._connection: sqlite3.Connection | None = None
        self._looking: asyncio.Task[None] | None = None

    async def open(self) -> None:
        """Begin, for data in a file."""
        if self._group_commit.path is None:
            return
        self._group_commit.connection.execute(f"PRAGMA wal_autocheckpoint = {ANYWAY}")
        self._connection = await self._group_commit.another(check_same_thread=False)
        self._looking = asyncio.create_task(self._look(self._connection))

    async def close(self) -> None:
        """End; the last connection to be closed copies what is left."""
        if self._looking is None or self._connection is None:
            return
        self._looking.cancel()
        with suppress(asyncio.CancelledError):
            await self._looking
        self._connection.close()
        self._looking = self._connection = None

    async def _look(self, connection: sqlite3.Connection) -> None:
        seen = self._group_commit.commits
        failing = False
        while True:
            await asyncio.sleep(EVERY)
            self._group_commit.damage.look()
            if seen == self._group_commit.commits:
                continue
            seen = self._group_commit.commits
            # Shielded, so that the thread has let go of the connection before it is closed.
            copying = asyncio.ensure_future(asyncio.to_thread(_copied, connection))
            try:
                error = await asyncio.shield(copying)
            except asyncio.CancelledError:
                await copying
                raise
            self._group_commit.damage.note(error)
            if error and not failing:
                _log.warning("the log cannot be copied into the file for now: %s", error)
            failing = error is not None


def _copied(connection: sqlite3.Connection) -> sqlite3.Error | None:
    """Copy; what stood in the way, if anything did."""
    try:
        connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
    except sqlite3.Error as error:
        return error
    return None
