"""The caches of SQLite: with them, histories of one shape have the same results as without."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from itertools import groupby
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from emulator.core.keys import NEVER
from emulator.storage.engine import Engine
from emulator.storage.opening import open_engine
from emulator.storage.sqlite import ballot_cache, documents
from engines.contract_dump import dumped
from engines.histories import OF_ONE_SHAPE, SHARED, History, run
from engines.shorthand import NOW
from support.examples import examples

ALONE = ("assign", "stock", "draw", "purge", "counts")
"""Operations of several steps, between which others could run."""


@pytest.fixture(params=["large caches", "caches of two entries"])
async def two(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[list[Engine]]:
    if request.param != "large caches":
        monkeypatch.setattr(ballot_cache, "MAX_BALLOTS", 2)
        monkeypatch.setattr(documents, "_MAX_CACHED", 2)
    async with open_engine("sqlite://", namespace="a") as fast, open_engine("sqlite://", namespace="a") as slow:
        yield [fast, slow]


def timed(history: History) -> Iterator[tuple[str, Any, Any, int, int]]:
    now = NOW
    for move, life, (what, of, value) in history:
        now += move
        yield what, of, value, now, min(now + life, NEVER)


async def answers_at_once(engine: Engine, history: History) -> list[object]:
    found: list[object] = []
    for is_alone, operations in groupby(timed(history), lambda operation: operation[0] in ALONE):
        started = (run(engine, *operation) for operation in operations)
        found += [await each for each in started] if is_alone else await asyncio.gather(*started)
    return found


async def answers_of_tables(engine: Engine, history: History) -> list[object]:
    found = []
    for operation in timed(history):
        engine.group_commit.flush_caches()  # type: ignore[attr-defined]
        found.append(await run(engine, *operation))
    return found


@pytest.mark.parametrize("shape", OF_ONE_SHAPE)
@settings(max_examples=examples(100), deadline=None, suppress_health_check=SHARED)
@given(data=st.data())
async def test_a_cache_agrees_with_the_tables(two: list[Engine], shape: str, data: st.DataObject) -> None:
    history = data.draw(OF_ONE_SHAPE[shape])
    fast, slow = two
    for each in two:
        await each.reset()

    assert await answers_at_once(fast, history) == await answers_of_tables(slow, history)
    assert await dumped(fast) == await dumped(slow)
