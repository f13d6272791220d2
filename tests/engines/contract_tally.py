"""The contract of tallies: their order, their beginning, and all channels together."""

from __future__ import annotations

from emulator.engines.base import Tally
from emulator.engines.engine import Engine
from engines.shorthand import END, EVERYWHERE, MANY, NOW, cast, choice_of, counts, key


class TallyContract:
    async def test_the_choice_with_the_most_casts_comes_first(self, engine: Engine) -> None:
        for voter, choice in (("U1", "a"), ("U2", "b"), ("U3", "c"), ("U4", "c"), ("U5", "b"), ("U6", "c")):
            await cast(engine, voter, choice)

        assert await counts(engine) == [("c", 3), ("b", 2), ("a", 1)]

    async def test_among_equal_counts_the_older_choice_comes_first(self, engine: Engine) -> None:
        for voter, choice in (("U1", "b"), ("U2", "c"), ("U3", "a"), ("U4", "c"), ("U5", "a"), ("U6", "b")):
            await cast(engine, voter, choice)

        assert await counts(engine) == [("b", 2), ("c", 2), ("a", 2)]

    async def test_a_choice_without_casts_for_a_while_loses_its_rank(self, engine: Engine) -> None:
        for voter, choice in (("U1", "a"), ("U2", "b"), ("U1", "b"), ("U1", "a")):
            await cast(engine, voter, choice)

        assert await counts(engine) == [("b", 1), ("a", 1)]

    async def test_a_choice_that_passes_from_voter_to_voter_keeps_its_rank(self, engine: Engine) -> None:
        for voter, choice in (("U1", "a"), ("U2", "b"), ("U3", "a"), ("U1", "c"), ("U3", "a")):
            await cast(engine, voter, choice)

        assert await counts(engine) == [("a", 1), ("b", 1), ("c", 1)]

    async def test_repeating_a_choice_keeps_its_rank(self, engine: Engine) -> None:
        for voter, choice in (("U1", "a"), ("U2", "b"), ("U1", "a")):
            await cast(engine, voter, choice)

        assert await counts(engine) == [("a", 1), ("b", 1)]

    async def test_a_choice_without_casts_is_absent(self, engine: Engine) -> None:
        await cast(engine, "U1", "a")
        await cast(engine, "U1", "b")

        assert await counts(engine) == [("b", 1)]

    async def test_top_returns_the_first_choices_of_the_tally(self, engine: Engine) -> None:
        for number in range(6):
            await cast(engine, f"U{number}", "abcabb"[number])
        whole = await counts(engine)

        assert [whole[:n] for n in range(5)] == [await counts(engine, top=n) for n in range(5)]

    async def test_a_ballot_with_many_choices_is_sorted_like_a_small_one(self, engine: Engine) -> None:
        """More choices than an engine may handle specially."""
        for number in range(700):
            await cast(engine, f"U{number}", f"c{number}")
        for number in range(300, 303):
            await cast(engine, f"V{number}", f"c{number}")
        await cast(engine, "U0", "c301")
        await cast(engine, "U1", "new")

        whole = await counts(engine)

        assert whole[:5] == [("c301", 3), ("c300", 2), ("c302", 2), ("c2", 1), ("c3", 1)]
        assert whole[-2:] == [("c699", 1), ("new", 1)]
        assert len(whole) == 699
        assert whole[:100] == await counts(engine, top=100)
        assert ("c699", Tally((*whole[:3], ("c699", 2), *whole[3:-2], whole[-1]), "c699")) == (
            await choice_of(engine, "U699"),
            (await cast(engine, "V0", "c699")).tally,
        )

    async def test_a_ballot_whose_many_choices_become_few_is_sorted_the_same(self, engine: Engine) -> None:
        for number in range(300):
            await cast(engine, f"U{number}", f"c{number}")
        for number in range(298):
            await cast(engine, f"U{number}", f"c{298 + number % 2}")

        assert await counts(engine) == [("c298", 150), ("c299", 150)]

    async def test_counts_add_up_over_all_channels(self, engine: Engine) -> None:
        for channel, choices in (("x", "aab"), ("y", "bbb"), ("", "c")):
            for number, choice in enumerate(choices):
                await cast(engine, f"U{number}", choice, key(channel=channel))
        await cast(engine, "U1", "a", key("two"))

        assert await counts(engine, EVERYWHERE) == [("b", 4), ("a", 2), ("c", 1)]
        assert await counts(engine, EVERYWHERE, top=2) == [("b", 4), ("a", 2)]

    async def test_among_equal_counts_in_all_channels_the_older_choice_is_first(self, engine: Engine) -> None:
        await cast(engine, "U1", "b", key(channel="y"))
        await cast(engine, "U2", "a", key(channel="x"))
        await cast(engine, "U3", "c", key(channel="y"))

        assert await counts(engine, EVERYWHERE) == [("b", 1), ("a", 1), ("c", 1)]

    async def test_expired_ballots_do_not_count_in_all_channels(self, engine: Engine) -> None:
        await cast(engine, "U1", "a", key(channel="x"), expires_at=NOW + 1)
        await cast(engine, "U1", "a", key(channel="y"), expires_at=NOW + 2)

        assert await counts(engine, EVERYWHERE, now=NOW + 1) == [("a", 1)]

    async def test_a_voters_choice_in_all_channels_is_the_latest_cast(self, engine: Engine) -> None:
        await cast(engine, "U1", "a", key(channel="x"))
        await cast(engine, "U1", "b", key(channel="y"), now=NOW + 1)
        await cast(engine, "U2", "c", key(channel="x"), now=NOW + 2)

        assert await choice_of(engine, "U1", EVERYWHERE, now=NOW + 2) == "b"
        assert await choice_of(engine, "U3", EVERYWHERE, now=NOW + 2) is None

    async def test_a_voters_choice_is_the_latest_of_several(self, engine: Engine) -> None:
        await engine.ballots.define(key(), b"", MANY, now=NOW, expires_at=END)
        for choice in ("a", "b", "a"):
            await cast(engine, "U1", choice)

        assert await choice_of(engine, "U1") == "a"
