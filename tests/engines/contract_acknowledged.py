"""The contract of acknowledged writes: none of them vanishes, whatever runs beside it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping

import pytest

from emulator.engines.engine import Engine
from engines.schedules import Account, Disturbance, Schedule
from engines.shorthand import NOW, Open, key

KEPT = 300


class AcknowledgedContract:
    schedules = 12
    """How many are generated; their seeds count from 0."""

    @pytest.fixture
    def disturbances(self, engine: Engine) -> Mapping[str, Disturbance]:
        """What may run beside writes on this engine alone."""
        return {}

    async def test_documents_kept_during_a_purge_stay(self, engine: Engine) -> None:
        keys = [key(f"{number}") for number in range(KEPT)]

        async def keep(writer: int) -> None:
            for one in keys[writer::10]:
                await engine.documents.keep({one: b"1"}, replace=False)

        async def purge() -> None:
            while not done.done():
                await engine.purge(now=NOW)

        done = asyncio.gather(*(keep(writer) for writer in range(10)))
        await asyncio.gather(done, purge())

        assert [] == sorted(set(keys) - set(await engine.documents.read(keys, now=NOW)))

    @pytest.mark.slow
    async def test_no_schedule_loses_an_acknowledged_write(
        self,
        engine: Engine,
        open: Open,
        disturbances: Mapping[str, Disturbance],
        record_property: Callable[[str, object], None],
    ) -> None:
        account = Account()
        async with open(namespace="other") as other:
            for seed in range(self.schedules):
                schedule = Schedule(engine, other, seed, disturbances, account)
                await schedule.run()
                if engine.survives_restart:
                    async with open(namespace="main") as again:
                        await schedule.check_again(again)

        record_property("account", str(account))
        assert account.lost.total() == 0, str(account)
