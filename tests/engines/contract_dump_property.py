"""Random histories: what is dumped and loaded cannot be told from what was there before."""

from __future__ import annotations

from itertools import accumulate

import pytest
from hypothesis import given, settings

from emulator.engines.engine import Engine
from engines.contract_dump import dumped, load
from engines.contract_property import SHARED
from engines.histories import HISTORIES, History, answers, replay
from engines.shorthand import NOW, Open
from support.examples import examples


class DumpPropertyContract:
    @pytest.mark.slow
    @settings(max_examples=examples(40), deadline=None, suppress_health_check=SHARED)
    @given(HISTORIES, HISTORIES)
    async def test_a_loaded_copy_dumps_and_behaves_the_same_after_any_history(
        self, engine: Engine, open: Open, before: History, after: History
    ) -> None:
        await engine.reset()
        now = await replay(engine, before)
        # Otherwise only the original reports what has expired before, also before the clock was set back.
        latest = max(accumulate((move for move, _, _ in before), initial=NOW))
        await engine.purge(now=latest)
        records = await dumped(engine, now=now)

        async with open(namespace="copy") as copy:
            await load(copy, records, size=7)

            assert records == await dumped(copy, now=now)
            assert await answers(engine, after, now) == await answers(copy, after, now)
            end = now + sum(move for move, _, _ in after)
            assert await dumped(engine, now=end) == await dumped(copy, now=end)
