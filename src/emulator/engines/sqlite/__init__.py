"""The engine on SQLite: in memory, or a file that several processes may share.

It puts the parts together; each shape has its own module.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import Self

from emulator.engines.base import Ballots, Documents, Expired, Logs, Relay
from emulator.engines.pools import Pools, Rosters
from emulator.engines.sqlite.ballot_cache import Heads
from emulator.engines.sqlite.ballots import SqliteBallots
from emulator.engines.sqlite.checkpoints import Checkpoints
from emulator.engines.sqlite.documents import SqliteDocuments
from emulator.engines.sqlite.group_commit import Turns
from emulator.engines.sqlite.lists import Lists
from emulator.engines.sqlite.logs import SqliteLogs
from emulator.engines.sqlite.namespace_ids import Space
from emulator.engines.sqlite.pool_cache import Generations
from emulator.engines.sqlite.pools import SqlitePools
from emulator.engines.sqlite.purge import Purge
from emulator.engines.sqlite.relay import SqliteRelay
from emulator.engines.sqlite.rosters import SqliteRosters


class SqliteEngine:
    """With `path` None everything is gone when the engine closes; else `path` is a file, created if missing.

    With `awaits_disk` a commit waits until the disk has what it wrote, so that a power cut loses nothing either.
    """

    name = "sqlite"
    doubts: Sequence[str] = ()

    def __init__(self, path: str | None, *, namespace: str, awaits_disk: bool = False) -> None:
        self._turns = Turns(path, awaits_disk=awaits_disk)
        self._space = Space(self._turns, namespace)
        self._heads = Heads(self._turns, self._space)
        lists = Lists(self._turns, self._space)
        self._generations = Generations(self._turns, self._space, lists)
        self.documents: Documents = SqliteDocuments(self._turns, self._space)
        self.ballots: Ballots = SqliteBallots(self._turns, self._space, self._heads)
        self.logs: Logs = SqliteLogs(self._turns, self._space)
        pools = SqlitePools(self._turns, self._space, lists, self._generations)
        self.pools: Pools = pools
        rosters = SqliteRosters(self._turns, self._space)
        self.rosters: Rosters = rosters
        self._checkpoints = Checkpoints(self._turns)
        self._relay = SqliteRelay(self._turns, self._space, uuid.uuid4().hex)
        self.relay: Relay = self._relay
        self._purge = Purge(self._turns, self._space, self._heads, self._generations, lists, rosters)
        self._turns.held = [self._heads, self._generations, pools, self._space]

    async def __aenter__(self) -> Self:
        await self._turns.open()
        try:
            with self._turns.damage.opening():
                await self._turns.write(self._space.settle)
                await self._relay.open()
                await self._checkpoints.open()
        except BaseException:
            self._turns.close()
            raise
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        await self._relay.close()
        await self._checkpoints.close()
        self._turns.close()

    async def check(self) -> None:
        # A full disk still answers those who read.
        if self._turns.is_failing:
            await self._turns.write(self._space.touch)
        else:
            await self._turns.read(self._space.look)

    async def purge(self, *, now: int) -> list[Expired]:
        return await self._purge(now)

    async def tidy(self) -> None:
        await self._purge.tidy()

    async def reset(self) -> None:
        await self._turns.write(self._reset)

    def _reset(self) -> None:
        self._heads.forget()
        self._generations.forget()
        self._space.renew()
