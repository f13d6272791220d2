"""The caches of SQLite: with them, histories of one shape have the same results as without."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from emulator.core.keys import NEVER
from emulator.storage.engine import Engine
from emulator.storage.opening import open_engine
from emulator.storage.sqlite import ballot_cache, documents
from engines.contract_dump import dumped
from engines.contract_property import SHARED
from engines.database_files import opened
from engines.histories import OF_ONE_SHAPE, History, run
from engines.shorthand import NOW, cast, choice_of, counts
from support.examples import examples


async def test_voters_who_only_read_a_ballot_are_not_taken_for_its_voters(path: Path) -> None:
    async with opened(path) as engine:
        await cast(engine, "U1", "a")
        assert await choice_of(engine, "U2") is None

        assert (await cast(engine, "U2", "b")).previous is None
        assert await choice_of(engine, "U2") == "b"


async def test_a_voter_may_vote_twice_in_one_commit(path: Path) -> None:
    async with opened(path) as engine:
        first, second = await asyncio.gather(cast(engine, "U1", "a"), cast(engine, "U1", "b"))

        assert (None, "a") == (first.previous, second.previous)
        assert [("b", 1)] == await counts(engine)


ALONE = ("assign", "stock", "purge", "counts")
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
        engine.group_commit.forget_read()  # type: ignore[attr-defined]
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
