"""The contract of reading a ballot's notes joined together, also while voting goes on."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from emulator.engines.base import CastRequest, Entry, Key, Terms
from emulator.engines.engine import Engine
from engines.shorthand import END, EVERYWHERE, MANY, NOW, LoopPasses, entries, key

VOTERS = [f"U{number}" for number in range(2300)]
"""Enough for several pages."""


async def note(
    engine: Engine, voter: str, at: Key | None = None, *, now: int = NOW, whole: bool = True, times: int = 1
) -> None:
    """Cast with a note that is the voter and the time."""
    request = CastRequest(voter, "a", f"{voter} {now - NOW}".encode(), times=times, whole=whole)
    await engine.ballots.cast(at or key(), request, now=now, expires_at=END)


async def fill(engine: Engine, at: Key | None = None, *, per_ms: int = 1, whole: bool = True) -> None:
    await asyncio.gather(
        *(note(engine, voter, at, now=NOW + number // per_ms, whole=whole) for number, voter in enumerate(VOTERS))
    )


def text_of(page: bytes | Sequence[Entry]) -> bytes:
    return page if isinstance(page, bytes) else b",".join(entry.note for entry in page)


async def notes(engine: Engine, at: Key | None = None, *, since: int = 0, limit: int | None = None) -> list[str]:
    pages = engine.ballots.notes(at or key(), now=NOW, separator=b",", since=since, limit=limit)
    text = b",".join([text_of(page) async for page in pages]).decode()
    return text.split(",") if text else []


async def expected(engine: Engine, at: Key | None = None, *, since: int = 0) -> list[str]:
    return [entry.note.decode() for entry in await entries(engine, at, since=since)]


class NotesContract:
    async def test_an_absent_ballot_has_no_notes(self, engine: Engine) -> None:
        assert await notes(engine) == []

    @pytest.mark.parametrize("per_ms", [1, 7, 1000, 5000])
    async def test_notes_are_those_of_the_entries_in_the_same_order(self, engine: Engine, per_ms: int) -> None:
        await fill(engine, per_ms=per_ms)
        await fill(engine, key("two"))

        assert await notes(engine) == [f"{voter} {number // per_ms}" for number, voter in enumerate(VOTERS)]

    @pytest.mark.parametrize("per_ms", [1, 7, 5000])
    async def test_since_and_limit_apply_to_notes(self, engine: Engine, per_ms: int) -> None:
        await fill(engine, per_ms=per_ms)
        for since in (0, NOW, NOW + 1, NOW + 300, NOW + 9000):
            some = await expected(engine, since=since)
            for limit in (0, 1, 999, 1000, 1001, 2299, 2300, 9999):
                assert some[:limit] == await notes(engine, since=since, limit=limit)

    async def test_notes_are_ordered_by_time_even_if_the_clock_goes_back(self, engine: Engine) -> None:
        for number, at in enumerate((5, 9, 2, 7, 2)):
            await note(engine, f"U{number}", now=NOW + at)

        assert await notes(engine) == ["U2 2", "U4 2", "U0 5", "U3 7", "U1 9"]

    async def test_one_earlier_cast_comes_before_a_thousand_later_ones(self, engine: Engine) -> None:
        await fill(engine)
        await note(engine, "early", now=NOW - 1)
        await note(engine, "late", now=NOW + 2400)

        assert await notes(engine) == ["early -1", *(f"{voter} {at}" for at, voter in enumerate(VOTERS)), "late 2400"]

    async def test_notes_of_interleaved_ballots_stay_apart(self, engine: Engine) -> None:
        ballots = [key(str(number)) for number in range(10)]
        await asyncio.gather(
            *(note(engine, voter, ballots[at % 7], now=NOW + at // 3) for at, voter in enumerate(VOTERS))
        )
        await asyncio.gather(*(note(engine, voter, ballots[9], now=NOW + 900) for voter in VOTERS[:900]))
        await note(engine, "last", ballots[0], now=NOW + 901)

        for ballot in ballots:
            assert await notes(engine, ballot) == await expected(engine, ballot)
            assert (
                await notes(engine, ballot, since=NOW + 100, limit=50)
                == (await expected(engine, ballot, since=NOW + 100))[:50]
            )

    async def test_notes_may_contain_any_bytes(self, engine: Engine) -> None:
        for number, text in enumerate((b"\x00\xff", b"}{", b"\x80\x00")):
            request = CastRequest(f"U{number}", "a", text, whole=True)
            await engine.ballots.cast(key(), request, now=NOW, expires_at=END)

        pages = [text_of(page) async for page in engine.ballots.notes(key(), now=NOW, separator=b",")]

        assert b",".join(pages) == b"\x00\xff,}{,\x80\x00"

    async def test_entries_whose_notes_are_not_whole_are_never_joined(self, engine: Engine) -> None:
        await fill(engine)
        await note(engine, "U1200", now=NOW + 1200, whole=False)
        seen: list[str] = []

        async for page in engine.ballots.notes(key(), now=NOW, separator=b","):
            seen += text_of(page).decode().split(",")
            assert not isinstance(page, bytes) or b"U1200 " not in page

        assert seen == await expected(engine)

    async def test_entries_that_were_cast_several_times_are_never_joined(self, engine: Engine) -> None:
        await engine.ballots.define(key(), b"", MANY, now=NOW, expires_at=END)
        await note(engine, "U1", times=2)
        await note(engine, "U2")
        await note(engine, "U2", now=NOW + 1)
        await engine.ballots.define(key(), b"", Terms(), now=NOW, expires_at=END)

        pages = [page async for page in engine.ballots.notes(key(), now=NOW, separator=b",")]

        assert [entry.times for page in pages if not isinstance(page, bytes) for entry in page] == [2, 2]

    async def test_a_whole_note_is_joined_again_after_one_that_was_not_whole(self, engine: Engine) -> None:
        await note(engine, "U1", whole=False)
        await note(engine, "U1", now=NOW + 1)

        assert await notes(engine) == ["U1 1"]

    async def test_the_event_loop_runs_between_pages_of_notes(self, engine: Engine) -> None:
        await fill(engine)

        async with LoopPasses() as passes:
            sizes = [text_of(page).count(b",") async for page in engine.ballots.notes(key(), now=NOW, separator=b",")]

        assert max(sizes) < 2000
        assert passes.count >= len(sizes)

    @pytest.mark.parametrize("per_ms", [1, 5000])
    async def test_notes_of_voters_who_vote_again_during_a_reading_appear_once(
        self, engine: Engine, per_ms: int
    ) -> None:
        await fill(engine, per_ms=per_ms)
        before, seen = await expected(engine), list[str]()

        async for page in engine.ballots.notes(key(), now=NOW, separator=b","):
            seen += text_of(page).decode().split(",")
            await asyncio.gather(*(note(engine, voter, now=NOW + 2400) for voter in VOTERS[:: 7 + len(seen) % 5]))
            await note(engine, f"N{len(seen)}", now=NOW + 2400)

        assert seen == before

    async def test_notes_of_all_channels_are_read_as_one(self, engine: Engine) -> None:
        for number in range(30):
            await note(engine, f"U{number}", key(channel=f"p{number % 3}"), now=NOW + number // 4)

        assert await notes(engine, EVERYWHERE) == await expected(engine, EVERYWHERE)
        assert len(await notes(engine, EVERYWHERE, limit=20)) == 20
