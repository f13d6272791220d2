"""What SQLite keeps in memory changes no result: each cache, beside the tables that it saves reading.

The fast way runs operations at once, so that they share a commit, with the caches that earlier ones have left. The slow
way runs them one by one, and each reads the tables.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from emulator.engines import open_engine
from emulator.engines.base import NEVER
from emulator.engines.engine import Engine
from emulator.errors import EngineError
from engines.contract_dump import dumped
from engines.contract_property import SHARED
from engines.database_files import opened
from engines.histories import OF_ONE_SHAPE, History, run
from engines.shorthand import NOW
from support.examples import examples

ALONE = ("assign", "stock", "purge", "counts")
"""Operations of several steps, between which others could run."""


@pytest.fixture
async def two() -> AsyncIterator[list[Engine]]:
    async with open_engine("sqlite://", namespace="a") as fast, open_engine("sqlite://", namespace="a") as slow:
        yield [fast, slow]


def timed(history: History) -> Iterator[tuple[str, Any, Any, int, int]]:
    now = NOW
    for move, life, (what, key, value) in history:
        now += move
        yield what, key, value, now, min(now + life, NEVER)


async def answers_at_once(engine: Engine, history: History) -> list[object]:
    found: list[object] = []
    for is_alone, operations in groupby(timed(history), lambda operation: operation[0] in ALONE):
        started = (run(engine, *operation) for operation in operations)
        found += [await each for each in started] if is_alone else await asyncio.gather(*started)
    return found


async def answers_of_tables(engine: Engine, history: History) -> list[object]:
    found = []
    for operation in timed(history):
        engine._group_commit.forget_read()  # type: ignore[attr-defined]
        found.append(await run(engine, *operation))
    return found


@pytest.mark.parametrize("shape", OF_ONE_SHAPE)
@settings(max_examples=examples(400), deadline=None, suppress_health_check=SHARED)
@given(data=st.data())
async def test_a_cache_agrees_with_the_tables(two: list[Engine], shape: str, data: st.DataObject) -> None:
    history = data.draw(OF_ONE_SHAPE[shape])
    fast, slow = two
    for each in two:
        await each.reset()

    assert await answers_at_once(fast, history) == await answers_of_tables(slow, history)
    assert await dumped(fast) == await dumped(slow)


@settings(max_examples=examples(100), deadline=None, suppress_health_check=SHARED)
@given(steps=st.lists(st.tuples(st.integers(0, 2), st.integers(1, 3), st.booleans()), max_size=20))
async def test_the_next_number_is_that_of_the_table(tmp_path: Path, steps: list[tuple[int, int, bool]]) -> None:
    async with (
        opened(tmp_path / "d.db") as one,
        opened(tmp_path / "d.db", "b") as two,
        opened(tmp_path / "d.db") as other,
    ):
        engines: list[Any] = [one, two, other]

        def take(engine: Any, count: int, fails: bool) -> None:
            (following,) = engine._group_commit.connection.execute("SELECT next FROM numbers").fetchone()
            assert list(range(following, following + count)) == [engine._namespace.next_number() for _ in range(count)]
            if fails:
                engine._group_commit.connection.execute("no statement")

        for at, count, fails in steps:
            with suppress(EngineError):
                await engines[at]._group_commit.write(take, engines[at], count, fails)
