"""The contract of terms: when a ballot accepts casts, and how many."""

from __future__ import annotations

import asyncio

import pytest

from emulator.engines.engine import Engine
from emulator.engines.shapes import CLOSED, EMPTY_TALLY, OVER_ALLOWANCE, UNKNOWN_VOTER, CastRequest, Tally, Terms
from engines.shorthand import END, MANY, NOW, cast, choice_of, counts, entries, key


async def define(engine: Engine, terms: Terms, *, expires_at: int = END) -> None:
    await engine.ballots.define(key(), b"poll", terms, now=NOW, expires_at=expires_at)


class TermsContract:
    @pytest.mark.parametrize(("at", "refused"), [(9, CLOSED), (10, None), (19, None), (20, CLOSED)])
    async def test_casts_are_accepted_from_opening_until_before_closing(
        self, engine: Engine, at: int, refused: str | None
    ) -> None:
        await define(engine, Terms(opens_at=NOW + 10, closes_at=NOW + 20))

        assert refused == (await cast(engine, "U1", "3", now=NOW + at)).refused

    async def test_a_disabled_ballot_refuses_casts(self, engine: Engine) -> None:
        await define(engine, Terms(disabled=True))

        assert (await cast(engine, "U1", "3")).refused == CLOSED

    async def test_unknown_voters_are_refused_if_only_known_ones_may_cast(self, engine: Engine) -> None:
        await define(engine, Terms(known_voters_only=True))

        refused = await engine.ballots.cast(key(), CastRequest("U1", "3"), now=NOW, expires_at=END)
        accepted = await engine.ballots.cast(key(), CastRequest("U1", "3", known=True), now=NOW, expires_at=END)

        assert (refused.refused, accepted.refused) == (UNKNOWN_VOTER, None)

    async def test_refusals_have_a_fixed_precedence(self, engine: Engine) -> None:
        request = CastRequest("U1", "3", times=99)
        refusals = []
        for terms in (
            MANY._replace(known_voters_only=True, disabled=True),
            MANY._replace(known_voters_only=True),
            MANY,
        ):
            await define(engine, terms)
            refusals.append((await engine.ballots.cast(key(), request, now=NOW, expires_at=END)).refused)

        assert refusals == [CLOSED, UNKNOWN_VOTER, OVER_ALLOWANCE]

    async def test_a_refusal_changes_nothing(self, engine: Engine) -> None:
        await define(engine, Terms(closes_at=NOW + 1))
        await cast(engine, "U1", "3", expires_at=END)
        before = await entries(engine)

        done = await cast(engine, "U1", "5", now=NOW + 1, expires_at=END + 10)

        assert (CLOSED, "3", Tally((("3", 1),), "3")) == done
        assert before == await entries(engine)
        assert await counts(engine, now=END - 1) == [("3", 1)]
        assert await counts(engine, now=END) == []

    async def test_a_refusal_on_an_absent_ballot_creates_nothing(self, engine: Engine) -> None:
        done = await cast(engine, "U1", "3", now=-1)

        assert done == (CLOSED, None, EMPTY_TALLY)
        assert await engine.purge(now=END) == []

    async def test_casts_add_up_if_a_voter_has_several(self, engine: Engine) -> None:
        await define(engine, MANY)

        done = [await cast(engine, "U1", choice, times=times) for choice, times in (("a", 1), ("b", 1), ("a", 2))]

        assert [each.previous for each in done] == [None, "a", "b"]
        assert Tally((("a", 3), ("b", 1)), "a") == done[-1].tally
        assert [(entry.choice, entry.times) for entry in await entries(engine)] == [("b", 1), ("a", 3)]

    async def test_each_voter_has_the_full_allowance(self, engine: Engine) -> None:
        await define(engine, MANY)

        done = [await cast(engine, voter, "a", times=3) for voter in ("U1", "U2")]

        assert [each.refused for each in done] == [None, None]
        assert await counts(engine) == [("a", 6)]

    @pytest.mark.parametrize(
        ("earlier", "last"),
        [
            ([], ("a", 4)),
            ([("a", 2)], ("a", 2)),
            ([("a", 3)], ("b", 3)),
            ([("a", 3), ("b", 2)], ("b", 1)),
            ([("a", 1), ("b", 1)], ("c", 1)),
        ],
    )
    async def test_casts_over_an_allowance_are_refused_and_change_nothing(
        self, engine: Engine, earlier: list[tuple[str, int]], last: tuple[str, int]
    ) -> None:
        """A voter may cast 5 times, 3 times for one choice, for 2 choices."""
        await define(engine, MANY)
        for choice, times in earlier:
            await cast(engine, "U1", choice, times=times)
        before = await counts(engine), await entries(engine), await choice_of(engine, "U1")

        done = await cast(engine, "U1", last[0], times=last[1], expires_at=END + 10)

        assert done.refused == OVER_ALLOWANCE
        assert before == (await counts(engine), await entries(engine), await choice_of(engine, "U1"))
        assert await engine.ballots.definition(key(), now=END - 1) == b"poll"
        assert await engine.ballots.definition(key(), now=END) is None

    @pytest.mark.parametrize(
        ("earlier", "last"), [([], ("a", 3)), ([("a", 2)], ("a", 1)), ([("a", 3), ("b", 1)], ("b", 1))]
    )
    async def test_casts_up_to_an_allowance_are_accepted(
        self, engine: Engine, earlier: list[tuple[str, int]], last: tuple[str, int]
    ) -> None:
        await define(engine, MANY)
        for choice, times in earlier:
            await cast(engine, "U1", choice, times=times)

        assert (await cast(engine, "U1", last[0], times=last[1])).refused is None

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

    async def test_new_terms_apply_to_later_casts_and_count_earlier_ones(self, engine: Engine) -> None:
        await cast(engine, "U1", "a")
        await define(engine, MANY)

        done = [await cast(engine, "U1", choice, times=2) for choice in ("a", "a", "b", "c")]

        assert [each.refused for each in done] == [None, OVER_ALLOWANCE, None, OVER_ALLOWANCE]
        assert await counts(engine) == [("a", 3), ("b", 2)]

    async def test_one_cast_replaces_several_after_the_terms_allow_only_one(self, engine: Engine) -> None:
        await define(engine, MANY)
        for voter in ("U1", "U2"):
            await cast(engine, voter, "a", times=3)
            await cast(engine, voter, "b", times=2)
        await define(engine, Terms())

        done = await cast(engine, "U1", "b")

        assert (None, "b", Tally((("a", 3), ("b", 3)), "b")) == done
        assert [entry[:3] for entry in await entries(engine)] == [("U2", "a", 3), ("U2", "b", 2), ("U1", "b", 1)]
