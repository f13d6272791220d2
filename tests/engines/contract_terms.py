"""The contract of terms: when a ballot accepts casts, and how many."""

from __future__ import annotations

import asyncio

import pytest

from emulator.storage.engine import Engine
from emulator.storage.shapes import CLOSED, EMPTY_TALLY, OVER_ALLOWANCE, Tally, Terms
from engines.shorthand import END, MANY, NOW, cast, counts, entries, key, purged


async def define(engine: Engine, terms: Terms, *, expires_at: int = END) -> None:
    await engine.ballots.define(key(), b"poll", terms, now=NOW, expires_at=expires_at)


class TermsContract:
    @pytest.mark.parametrize(("at", "refused"), [(9, CLOSED), (10, None), (19, None), (20, CLOSED)])
    async def test_casts_are_accepted_from_opening_until_before_closing(
        self, engine: Engine, at: int, refused: str | None
    ) -> None:
        await define(engine, Terms(opens_at=NOW + 10, closes_at=NOW + 20))

        assert refused == (await cast(engine, "U1", "3", now=NOW + at)).refused

    async def test_a_cast_beyond_an_allowance_is_refused_and_changes_nothing(self, engine: Engine) -> None:
        await define(engine, MANY)
        over, casts = OVER_ALLOWANCE, [("a", 4), ("a", 3), ("a", 1), ("b", 1), ("c", 1), ("b", 2), ("b", 1)]

        done = [(await cast(engine, "U1", choice, times=times)).refused for choice, times in casts]

        assert [over, None, over, None, over, over, None] == done
        assert await counts(engine) == [("a", 3), ("b", 2)]

    async def test_a_refusal_on_an_absent_ballot_creates_nothing(self, engine: Engine) -> None:
        done = await cast(engine, "U1", "3", now=-1)

        assert done == (CLOSED, None, EMPTY_TALLY)
        assert await purged(engine, now=END) == []

    async def test_concurrent_casts_of_one_voter_respect_the_allowance(self, engine: Engine) -> None:
        await define(engine, Terms(per_voter=7, per_choice=7))

        done = await asyncio.gather(*(cast(engine, "U1", "a") for _ in range(20)))

        assert [each.refused for each in done].count(None) == 7
        assert await counts(engine) == [("a", 7)]

    async def test_a_cast_of_zero_times_raises_an_error(self, engine: Engine) -> None:
        await define(engine, MANY)

        with pytest.raises(ValueError, match="times"):
            await cast(engine, "U1", "a", times=0)

        assert await counts(engine) == []

    async def test_one_cast_replaces_several_after_the_terms_allow_only_one(self, engine: Engine) -> None:
        await define(engine, MANY)
        for voter in ("U1", "U2"):
            await cast(engine, voter, "a", times=3)
            await cast(engine, voter, "b", times=2)
        await define(engine, Terms())

        done = await cast(engine, "U1", "b")

        assert (None, "b", Tally((("a", 3), ("b", 3)), "b")) == done
        assert [entry[:3] for entry in await entries(engine)] == [("U2", "a", 3), ("U2", "b", 2), ("U1", "b", 1)]
