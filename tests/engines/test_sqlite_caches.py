"""The caches of SQLite: with them, histories of one shape have the same results as without."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
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
from engines.shorthand import NOW, cast, choice_of, counts, entries, key
from support.examples import examples


async def test_the_voter_whose_vote_created_the_ballot_is_known_after_many_others(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ballot_cache, "MAX_HELD", 8)
    async with opened(path) as engine:
        for number in range(20):
            await cast(engine, f"U{number}", "a")

        again = [(await cast(engine, f"U{number}", "b")).previous for number in range(20)]

        assert ["a"] * 20 == again
        assert [("b", 20)] == await counts(engine)


@pytest.mark.parametrize(("before", "votes", "reads"), [(8, 1, 0), (8, 3, 0), (8, 20, 0), (20, 0, 19)])
async def test_a_voter_may_vote_twice_in_one_commit_while_others_fill_the_cache(
    path: Path, monkeypatch: pytest.MonkeyPatch, before: int, votes: int, reads: int
) -> None:
    monkeypatch.setattr(ballot_cache, "MAX_HELD", 8)
    async with opened(path) as engine:
        for number in range(before):
            await cast(engine, f"U{number}", "a")

        await asyncio.gather(
            cast(engine, "U0", "b"),
            *(cast(engine, f"N{number}", "a") for number in range(votes)),
            *(engine.ballots.tally(key(), now=NOW, voter=f"U{number}") for number in range(1, 1 + reads)),
            cast(engine, "U0", "c"),
        )

        assert [("a", before - 1 + votes), ("c", 1)] == await counts(engine)


async def test_voters_who_only_read_a_ballot_are_not_taken_for_its_voters(path: Path) -> None:
    async with opened(path) as engine:
        await cast(engine, "U1", "a")
        assert await choice_of(engine, "U2") is None

        assert (await cast(engine, "U2", "b")).previous is None
        assert await choice_of(engine, "U2") == "b"


@pytest.mark.parametrize("url", ["sqlite://", "sqlite://{path}"])
async def test_full_caches_and_filters_change_no_count(path: Path, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ballot_cache, "MAX_HELD", 3)
    monkeypatch.setattr(ballot_cache, "MAX_ADDED", 5)
    generator, held = random.Random(3), dict[str, str]()
    async with open_engine(url.format(path=path), namespace="main") as engine:
        for _ in range(60):
            votes = [(f"U{generator.randrange(25)}", generator.choice("abc")) for _ in range(4)]
            done = await asyncio.gather(*(cast(engine, voter, choice) for voter, choice in votes))
            for (voter, choice), each in zip(votes, done, strict=True):
                assert each.previous == held.get(voter)
                held[voter] = choice

        assert dict(await counts(engine)) == Counter(held.values())
        assert {entry.voter: entry.choice for entry in await entries(engine)} == held


ALONE = ("assign", "stock", "purge", "counts")
"""Operations of several steps, between which others could run."""


@pytest.fixture(params=["large caches", "caches of two entries"])
async def two(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[list[Engine]]:
    if request.param != "large caches":
        for module, name in ((ballot_cache, "MAX_HELD"), (ballot_cache, "MAX_BALLOTS"), (documents, "_MAX_PEEKED")):
            monkeypatch.setattr(module, name, 2)
        monkeypatch.setattr(ballot_cache, "MAX_ADDED", 5)
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
