"""Casts in SQLite: which voters are looked up, and casts that are not written yet."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager, suppress
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from emulator.engines.engine import Engine
from emulator.engines.opening import open_engine
from emulator.engines.shapes import NEVER, CastRequest
from emulator.engines.sqlite import ballot_cache, documents
from emulator.engines.sqlite.ballot_cache import VoterFilter
from emulator.errors import EngineError
from engines.contract_dump import dumped
from engines.contract_property import SHARED
from engines.database_files import opened
from engines.histories import OF_ONE_SHAPE, History, run
from engines.shorthand import END, EVERYWHERE, NOW, cast, choice_of, counts, entries, key
from support.examples import examples


@contextmanager
def statements(engine: Engine, start: str) -> Iterator[list[str]]:
    """Record the statements in this block that begin with `start`."""
    found: list[str] = []
    connection = engine._group_commit.connection  # type: ignore[attr-defined]
    connection.set_trace_callback(lambda text: found.append(text) if text.strip().startswith(start) else None)
    try:
        yield found
    finally:
        connection.set_trace_callback(None)


async def test_neither_new_voters_nor_known_ones_are_looked_up(path: Path) -> None:
    async with opened(path) as engine:
        with statements(engine, "SELECT number, slot") as lookups:
            for choice in "ab":
                await asyncio.gather(*(cast(engine, f"U{number}", choice) for number in range(50)))

        assert await counts(engine) == [("b", 50)]
        assert len(lookups) <= 1  # one bit of the filter may be shared


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


async def test_voters_from_before_the_file_was_opened_are_looked_up_once(path: Path) -> None:
    async with opened(path) as engine:
        await cast(engine, "U1", "a")
    async with opened(path) as engine:
        with statements(engine, "SELECT number, slot") as lookups:
            previous = [(await cast(engine, "U1", choice)).previous for choice in "bc"]

        assert previous == ["a", "b"]
        assert len(lookups) == 1


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


async def test_a_full_cache_of_ballots_loses_no_cast(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ballot_cache, "MAX_BALLOTS", 2)
    ballots = [key(name) for name in "abcde"]
    async with open_engine("sqlite://", namespace="main") as engine:
        await asyncio.gather(*(cast(engine, f"U{number}", "x", at) for number in range(3) for at in ballots))

        assert [[("x", 3)]] * 5 == [await counts(engine, at) for at in ballots]


async def test_unsaved_casts_count_in_the_tally_of_all_channels() -> None:
    async with open_engine("sqlite://", namespace="main") as engine:
        _, tally = await asyncio.gather(cast(engine, "U1", "a"), engine.ballots.tally(EVERYWHERE, now=NOW, voter="U1"))

        assert (tally.counts, tally.choice) == ((("a", 1),), "a")


async def test_a_ballot_dropped_right_after_a_cast_leaves_no_rows(path: Path) -> None:
    async with opened(path) as engine:
        await asyncio.gather(cast(engine, "U1", "a"), engine.ballots.drop(key(), now=NOW), engine.tidy())
        await engine.tidy()

        rows = engine._group_commit.connection.execute("SELECT count(*) FROM marks").fetchone()  # type: ignore[attr-defined]
        assert rows == (0,)


async def test_unusable_text_raises_before_anything_is_counted() -> None:
    async with open_engine("sqlite://", namespace="main") as engine:
        for request in (CastRequest("\ud800", "a"), CastRequest("U1", "\ud800")):
            with pytest.raises(UnicodeEncodeError):
                await engine.ballots.cast(key(), request, now=NOW, expires_at=END)

        assert await counts(engine) == []


async def test_casts_of_a_failed_commit_are_forgotten(path: Path) -> None:
    async with opened(path) as engine:
        await cast(engine, "U0", "a")
        connection = engine._group_commit.connection  # type: ignore[attr-defined]
        connection.execute("CREATE TEMP TRIGGER full BEFORE INSERT ON marks BEGIN SELECT RAISE(ABORT, 'full'); END")
        results = await asyncio.gather(cast(engine, "U0", "b"), cast(engine, "U1", "b"), return_exceptions=True)
        assert [type(each).__name__ for each in results] == ["EngineError"] * 2
        connection.execute("DROP TRIGGER full")

        assert [(await cast(engine, voter, "c")).previous for voter in ("U0", "U1")] == ["a", None]
        assert await counts(engine) == [("c", 2)]


def test_a_voter_is_new_to_the_filter_once() -> None:
    voters = VoterFilter()

    assert [voters.add(1, "U1"), voters.add(1, "U1"), voters.add(2, "U1")] == [True, False, True]


def test_a_full_filter_starts_again_in_a_new_generation(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ballot_cache, "MAX_ADDED", 2)
    voters = VoterFilter()

    assert [(voters.add(1, f"U{number}"), voters.generation) for number in (1, 2, 1)] == [
        (True, 1),
        (True, 2),
        (True, 2),
    ]


async def test_the_work_of_reading_notes_grows_with_their_number_only() -> None:
    steps = [await steps_of_notes(voters) for voters in (2_000, 8_000)]

    assert steps[1] < 6 * steps[0]


async def steps_of_notes(voters: int) -> int:
    """The steps of SQLite's virtual machine, in hundreds, to read the notes of this many voters of one instant."""
    async with open_engine("sqlite://", namespace="main") as engine:
        requests = [CastRequest(f"U{number}", "a", b"note", whole=True) for number in range(voters)]
        await asyncio.gather(*(engine.ballots.cast(key(), each, now=NOW, expires_at=END) for each in requests))
        steps = 0

        def count() -> int:
            nonlocal steps
            steps += 1
            return 0

        engine._group_commit.connection.set_progress_handler(count, 100)  # type: ignore[attr-defined]
        pages = [page async for page in engine.ballots.notes(key(), now=NOW, separator=b",")]
        assert all(isinstance(page, bytes) for page in pages)
        return steps


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
