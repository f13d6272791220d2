"""One database, which the engines of all its namespaces share: a connection, commits, checkpoints and messages."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from emulator.engines.sqlite.checkpoints import Checkpoints
from emulator.engines.sqlite.group_commit import GroupCommit
from emulator.engines.sqlite.namespace_ids import Numbers
from emulator.engines.sqlite.relay import Messages
from emulator.engines.upgrades import Upgrades
from emulator.errors import EngineError


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
        """Use a namespace during the block. Raises `EngineError` if another engine uses it, for each has its caches."""
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
