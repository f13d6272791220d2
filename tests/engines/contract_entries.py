"""The contract of reading a ballot's entries, also while voting goes on."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from typing import cast as typed

from emulator.engines.base import CastRequest, Entry, Key
from emulator.engines.engine import Engine
from engines.shorthand import END, EVERYWHERE, MANY, NOW, LoopPasses, all_of, cast, counts, entries, key

VOTERS = [f"U{number}" for number in range(2300)]
"""Enough for several pages."""


async def fill(engine: Engine, at: Key | None = None, voters: Sequence[str] = VOTERS, *, later: int = 0) -> None:
    """Have each voter cast for `a`, one every millisecond."""
    await asyncio.gather(
        *(
            engine.ballots.cast(at or key(), CastRequest(voter, "a"), now=NOW + later + number, expires_at=END)
            for number, voter in enumerate(voters)
        )
    )


def names(some: Sequence[Entry]) -> list[str]:
    return [entry.voter for entry in some]


class EntriesContract:
    async def test_entries_come_oldest_first(self, engine: Engine) -> None:
        for voter, at in (("U1", 5), ("U2", 9), ("U3", 2), ("U4", 7)):
            await cast(engine, voter, "a", now=NOW + at)

        assert names(await entries(engine)) == ["U3", "U1", "U4", "U2"]

    async def test_entries_of_the_same_time_come_in_the_order_of_casting(self, engine: Engine) -> None:
        for voter in ("U3", "U1", "U2", "U3"):
            await cast(engine, voter, "a")

        assert names(await entries(engine)) == ["U1", "U2", "U3"]

    async def test_since_excludes_earlier_casts(self, engine: Engine) -> None:
        for number in range(4):
            await cast(engine, f"U{number}", "a", now=NOW + number)

        assert names(await entries(engine, since=NOW + 2)) == ["U2", "U3"]

    async def test_limit_caps_the_number_of_entries(self, engine: Engine) -> None:
        await fill(engine)

        for limit in (0, 1, 5, 1000, 1001, 2299, 2300, 9999):
            some = await all_of(engine.ballots.entries(key(), now=NOW, limit=limit))

            assert VOTERS[:limit] == names(some)

    async def test_a_long_reading_is_complete_and_in_order(self, engine: Engine) -> None:
        await fill(engine)

        assert names(await entries(engine)) == VOTERS
        assert VOTERS[1234:] == names(await entries(engine, since=NOW + 1234))

    async def test_pages_are_bounded_and_the_event_loop_runs_in_between(self, engine: Engine) -> None:
        await fill(engine)

        async with LoopPasses() as passes:
            sizes = [len(page) async for page in engine.ballots.entries(key(), now=NOW)]

        assert max(sizes) <= 2000
        assert 0 not in sizes
        assert passes.count >= len(sizes)

    async def test_voters_who_vote_again_during_a_reading_appear_once(self, engine: Engine) -> None:
        await fill(engine)
        seen: list[Entry] = []
        moved = {voter for number, voter in enumerate(VOTERS) if number % 3 == 0}

        async for page in engine.ballots.entries(key(), now=NOW):
            seen += page
            for voter in sorted(moved):
                await engine.ballots.cast(key(), CastRequest(voter, "a"), now=NOW + 5000 + len(seen), expires_at=END)
            await cast(engine, f"N{len(seen)}", "a", now=NOW + 5000)

        assert {1} == set(Counter(names(seen)).values())
        assert set(VOTERS) <= set(names(seen))
        assert seen == sorted(seen, key=lambda entry: entry.cast_at)

    async def test_voters_who_change_their_choice_during_a_reading_appear_once(self, engine: Engine) -> None:
        await fill(engine)
        seen: list[Entry] = []

        async for page in engine.ballots.entries(key(), now=NOW):
            seen += page
            await asyncio.gather(*(cast(engine, voter, f"c{len(seen)}", now=NOW + 9000) for voter in VOTERS[::2]))

        assert {1} == set(Counter((entry.voter, entry.choice) for entry in seen).values())
        assert set(VOTERS) == set(names(seen))

    async def test_casts_that_add_up_during_a_reading_appear_once_per_choice(self, engine: Engine) -> None:
        await engine.ballots.define(key(), b"", MANY, now=NOW, expires_at=END)
        await fill(engine)
        seen: list[Entry] = []

        async for page in engine.ballots.entries(key(), now=NOW):
            seen += page
            for voter in VOTERS[::5]:
                await cast(engine, voter, "a", now=NOW + 9000)
                await cast(engine, voter, "b", now=NOW + 9000)

        assert {1} == set(Counter((entry.voter, entry.choice) for entry in seen).values())
        assert set(VOTERS) == {entry.voter for entry in seen if entry.choice == "a"}

    async def test_no_voter_appears_twice_if_the_clock_goes_back(self, engine: Engine) -> None:
        await fill(engine)
        seen: list[Entry] = []

        async for page in engine.ballots.entries(key(), now=NOW):
            seen += page
            await asyncio.gather(*(cast(engine, voter, "a", now=NOW + 2000) for voter in VOTERS))

        assert {1} == set(Counter(names(seen)).values())
        assert set(VOTERS) == set(names(seen))

    async def test_a_reading_can_be_abandoned_and_another_begun(self, engine: Engine) -> None:
        await fill(engine)
        reading = _closable(engine.ballots.entries(key(), now=NOW))
        first = await anext(reading)

        await reading.aclose()
        await cast(engine, "U0", "b", now=NOW + 9000)

        assert VOTERS[: len(first)] == names(first)
        assert [*VOTERS[1:], "U0"] == names(await entries(engine))
        assert await counts(engine) == [("a", 2299), ("b", 1)]

    async def test_concurrent_readings_do_not_affect_each_other(self, engine: Engine) -> None:
        await fill(engine)

        async def vote() -> None:
            for voter in VOTERS[:200]:
                await cast(engine, voter, "b", now=NOW + 9000)

        *readings, _ = await asyncio.gather(*(entries(engine) for _ in range(4)), vote())

        assert [set(VOTERS)] * 4 == [set(names(some)) for some in readings]
        assert [len(VOTERS)] * 4 == [len(some) for some in readings]

    async def test_all_channels_are_read_as_one_in_the_same_order(self, engine: Engine) -> None:
        channels = [key(channel=f"p{number}") for number in range(3)]
        for number in range(30):
            await cast(engine, f"U{number}", "a", channels[number % 3], now=NOW + number // 4)
        await cast(engine, "else", "a", key("two"))

        assert [f"U{number}" for number in range(30)] == names(await entries(engine, EVERYWHERE))
        assert [f"U{number}" for number in range(8, 30)] == names(await entries(engine, EVERYWHERE, since=NOW + 2))

    async def test_very_many_channels_are_read_as_one(self, engine: Engine) -> None:
        await asyncio.gather(*(cast(engine, f"U{n}", "a", key(channel=str(n)), now=NOW + n) for n in range(400)))

        some = await all_of(engine.ballots.entries(EVERYWHERE, now=NOW, limit=350))

        assert VOTERS[:350] == names(some)

    async def test_voters_who_vote_again_appear_once_in_all_channels(self, engine: Engine) -> None:
        here, there = key(channel="x"), key(channel="y")
        await fill(engine, here)
        await fill(engine, there, [f"T{number}" for number in range(1000)], later=700)
        seen: list[Entry] = []

        async for page in engine.ballots.entries(EVERYWHERE, now=NOW):
            seen += page
            for number in range(0, 1000, 7):
                await cast(engine, f"U{number * 2}", "b", here, now=NOW + 9000)
                await cast(engine, f"T{number}", "b", there, now=NOW + 9000)

        assert {1} == set(Counter(names(seen)).values())
        assert len(seen) == 2300 + 1000
        assert seen == sorted(seen, key=lambda entry: entry.cast_at)


def _closable(pages: AsyncIterator[Sequence[Entry]]) -> _Reading:
    return typed(_Reading, pages)


class _Reading(AsyncIterator[Sequence[Entry]]):
    """Readings are async generators, so that they can be abandoned."""

    async def aclose(self) -> None: ...
