"""The contract of reading a ballot's entries, also while voting goes on."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence

import pytest

from emulator.core.keys import Key
from emulator.storage.engine import Engine
from emulator.storage.shapes import BallotEntry, CastRequest
from engines.shorthand import END, EVERYWHERE, MANY, NOW, all_of, cast, counts, entries, key

VOTERS = [f"U{number}" for number in range(1100)]
"""Enough for several pages."""


async def fill(engine: Engine, at: Key | None = None, voters: Sequence[str] = VOTERS, *, later: int = 0) -> None:
    """Have each voter cast for `a`, one every millisecond."""
    await asyncio.gather(
        *(
            engine.ballots.cast(at or key(), CastRequest(voter, "a"), now=NOW + later + number, expires_at=END)
            for number, voter in enumerate(voters)
        )
    )


def names(some: Sequence[BallotEntry]) -> list[str]:
    return [entry.voter for entry in some]


async def note(engine: Engine, voter: str, at: Key | None = None, *, now: int = NOW) -> None:
    """Cast with a note that is the voter and the time."""
    request = CastRequest(voter, "a", f"{voter} {now - NOW}".encode())
    await engine.ballots.cast(at or key(), request, now=now, expires_at=END)


async def fill_notes(engine: Engine, at: Key | None = None, *, per_ms: int = 1) -> list[str]:
    """Have each voter cast, `per_ms` every millisecond, and return their notes in order."""
    await asyncio.gather(*(note(engine, voter, at, now=NOW + number // per_ms) for number, voter in enumerate(VOTERS)))
    return [f"{voter} {number // per_ms}" for number, voter in enumerate(VOTERS)]


async def notes(engine: Engine, at: Key | None = None, *, since: int = 0, limit: int | None = None) -> list[str]:
    some = await all_of(engine.ballots.entries(at or key(), now=NOW, since=since, limit=limit))
    return [entry.note.decode() for entry in some]


class EntriesContract:
    async def test_entries_of_the_same_time_come_in_the_order_of_casting(self, engine: Engine) -> None:
        for voter in ("U3", "U1", "U2", "U3"):
            await cast(engine, voter, "a")

        assert names(await entries(engine)) == ["U1", "U2", "U3"]

    async def test_casts_that_add_up_during_a_reading_appear_once_per_choice(self, engine: Engine) -> None:
        await engine.ballots.define(key(), b"", MANY, now=NOW, expires_at=END)
        await fill(engine)
        seen: list[BallotEntry] = []

        async for page in engine.ballots.entries(key(), now=NOW):
            seen += page
            for voter in VOTERS[::5]:
                await cast(engine, voter, "a", now=NOW + 9000)
                await cast(engine, voter, "b", now=NOW + 9000)

        assert {1} == set(Counter((entry.voter, entry.choice) for entry in seen).values())
        assert set(VOTERS) == {entry.voter for entry in seen if entry.choice == "a"}

    async def test_no_voter_appears_twice_if_the_clock_goes_back(self, engine: Engine) -> None:
        await fill(engine)
        seen: list[BallotEntry] = []

        async for page in engine.ballots.entries(key(), now=NOW):
            seen += page
            await asyncio.gather(*(cast(engine, voter, "a", now=NOW + 1000) for voter in VOTERS))

        assert {1} == set(Counter(names(seen)).values())
        assert set(VOTERS) == set(names(seen))

    async def test_a_reading_can_be_abandoned_and_another_begun(self, engine: Engine) -> None:
        await fill(engine)
        reading = engine.ballots.entries(key(), now=NOW)
        first = await anext(reading)

        await reading.aclose()  # type: ignore[attr-defined]  # readings are async generators
        await cast(engine, "U0", "b", now=NOW + 9000)

        assert VOTERS[: len(first)] == names(first)
        assert [*VOTERS[1:], "U0"] == names(await entries(engine))
        assert await counts(engine) == [("a", 1099), ("b", 1)]

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
        await fill(engine, there, [f"T{number}" for number in range(500)], later=300)
        seen: list[BallotEntry] = []

        async for page in engine.ballots.entries(EVERYWHERE, now=NOW):
            seen += page
            for number in range(0, 500, 7):
                await cast(engine, f"U{number * 2}", "b", here, now=NOW + 9000)
                await cast(engine, f"T{number}", "b", there, now=NOW + 9000)

        assert {1} == set(Counter(names(seen)).values())
        assert len(seen) == 1100 + 500
        assert seen == sorted(seen, key=lambda entry: entry.cast_at)

    @pytest.mark.parametrize("per_ms", [7, 5000])
    async def test_since_and_limit_apply_to_notes(self, engine: Engine, per_ms: int) -> None:
        expected = await fill_notes(engine, per_ms=per_ms)
        for since in (0, 1, 30, 9000):
            some = expected[since * per_ms :]
            for limit in (0, 1, 499, 500, 501, 1099, 1100, 9999):
                assert some[:limit] == await notes(engine, since=NOW + since, limit=limit)

    async def test_notes_are_ordered_by_time_even_if_the_clock_goes_back(self, engine: Engine) -> None:
        for number, at in enumerate((5, 9, 2, 7, 2)):
            await note(engine, f"U{number}", now=NOW + at)

        assert await notes(engine) == ["U2 2", "U4 2", "U0 5", "U3 7", "U1 9"]

    async def test_notes_of_interleaved_ballots_stay_apart(self, engine: Engine) -> None:
        ballots = [key(str(number)) for number in range(8)]
        await asyncio.gather(
            *(note(engine, voter, ballots[at % 7], now=NOW + at // 3) for at, voter in enumerate(VOTERS))
        )
        await asyncio.gather(*(note(engine, voter, ballots[7], now=NOW + 900) for voter in VOTERS[:600]))
        expected = [[f"{voter} {at // 3}" for at, voter in enumerate(VOTERS) if at % 7 == each] for each in range(7)]

        for ballot, some in zip(ballots, [*expected, [f"{voter} 900" for voter in VOTERS[:600]]], strict=True):
            later = [each for each in some if int(each.split()[1]) >= 100]
            assert await notes(engine, ballot) == some
            assert await notes(engine, ballot, since=NOW + 100, limit=50) == later[:50]

    async def test_notes_may_contain_any_bytes(self, engine: Engine) -> None:
        texts = (b"\x00\xff", b"}{", b"\x80\x00", b"\xff" * 32, b"\xff" * 256, b"\xff" * 65_536)
        for number, text in enumerate(texts):
            request = CastRequest(f"U{number}", "a", text)
            await engine.ballots.cast(key(), request, now=NOW, expires_at=END)

        assert tuple(entry.note for entry in await entries(engine)) == texts

    async def test_notes_of_voters_who_vote_again_during_a_reading_appear_once(self, engine: Engine) -> None:
        before, seen = await fill_notes(engine, per_ms=7), list[str]()

        async for page in engine.ballots.entries(key(), now=NOW):
            seen += [entry.note.decode() for entry in page]
            await asyncio.gather(*(note(engine, voter, now=NOW + 2400) for voter in VOTERS[:: 7 + len(seen) % 5]))
            await note(engine, f"N{len(seen)}", now=NOW + 2400)

        assert seen == before
