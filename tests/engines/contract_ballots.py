"""The contract of ballots where each voter has one cast."""

from __future__ import annotations

import asyncio

from emulator.storage.engine import Engine
from emulator.storage.shapes import EMPTY_TALLY, BallotEntry, CastRequest, Tally, Terms
from engines.shorthand import END, EVERYWHERE, NOW, ODD, cast, choice_of, counts, entries, key


class BallotsContract:
    async def test_a_cast_returns_no_tally_unless_requested(self, engine: Engine) -> None:
        done = await engine.ballots.cast(key(), CastRequest("U1", "3"), now=NOW, expires_at=END)

        assert done == (None, None, EMPTY_TALLY)
        assert await counts(engine) == [("3", 1)]

    async def test_an_entry_is_the_latest_cast_with_its_note(self, engine: Engine) -> None:
        await engine.ballots.cast(key(), CastRequest("U1", "3", b"first"), now=NOW, expires_at=END)
        await engine.ballots.cast(key(), CastRequest("U1", "4", b"\x00second"), now=NOW + 1, expires_at=END)

        assert [BallotEntry("U1", "4", 1, NOW + 1, b"\x00second")] == await entries(engine)

    async def test_concurrent_casts_are_counted_exactly(self, engine: Engine) -> None:
        await asyncio.gather(*(cast(engine, f"U{n % 40}", str(n % 7)) for n in range(200)))

        last = {f"U{n % 40}": str(n % 7) for n in range(200)}
        tallied = dict(await counts(engine))
        entered = {entry.voter: entry.choice for entry in await entries(engine)}
        assert (40, last.keys()) == (sum(tallied.values()), entered.keys())
        assert tallied == {choice: list(entered.values()).count(choice) for choice in set(entered.values())}

    async def test_each_concurrent_cast_sees_one_more_cast(self, engine: Engine) -> None:
        done = await asyncio.gather(*(cast(engine, f"U{n}", "3") for n in range(50)))

        assert list(range(1, 51)) == sorted(each.tally.counts[0][1] for each in done)

    async def test_unusual_voters_and_choices_stay_distinct(self, engine: Engine) -> None:
        for odd in ODD:
            await cast(engine, odd, odd)

        assert [(odd, 1) for odd in ODD] == await counts(engine)
        assert list(ODD) == [await choice_of(engine, odd) for odd in ODD]
        assert [(odd, odd) for odd in ODD] == [(entry.voter, entry.choice) for entry in await entries(engine)]

    async def test_dropping_a_ballot_deletes_its_definition(self, engine: Engine) -> None:
        await engine.ballots.define(key(), b"poll", Terms(per_voter=9), now=NOW, expires_at=END)
        await cast(engine, "U1", "3")

        assert [key()] == await engine.ballots.drop(key(), now=NOW)

        assert await counts(engine) == []
        assert await entries(engine) == []
        assert await engine.ballots.definition(key(), now=NOW) is None
        assert (None, None, Tally((("5", 1),), "5")) == await cast(engine, "U1", "5")

    async def test_dropping_all_channels_keeps_other_ballots(self, engine: Engine) -> None:
        others = [key("two"), key(owner="else"), key()._replace(kind="else")]
        for each in (*others, key(), key(channel=""), key(channel="b")):
            await cast(engine, "U1", "3", each)

        dropped = await engine.ballots.drop(EVERYWHERE, now=NOW)

        assert {key(), key(channel=""), key(channel="b")} == {*dropped}
        assert await counts(engine, EVERYWHERE) == []
        assert [await counts(engine, each) for each in (key(), key(channel="b"))] == [[], []]
        assert [await counts(engine, each) for each in others] == [[("3", 1)]] * 3

    async def test_a_definition_expires_with_its_ballot(self, engine: Engine) -> None:
        await engine.ballots.define(key(), b"one", Terms(), now=NOW, expires_at=END)
        await engine.ballots.define(key(), b"two", Terms(), now=NOW, expires_at=END)

        assert await engine.ballots.definition(key(), now=END - 1) == b"two"
        assert await engine.ballots.definition(key(), now=END) is None

    async def test_a_definition_is_replaced_only_in_place_of_the_expected_one(self, engine: Engine) -> None:
        async def redefine(expected: bytes | None, new: bytes, now: int = NOW) -> bool:
            return await engine.ballots.define(key(), new, Terms(), now=now, expires_at=now + 5, only_if=expected)

        assert not await redefine(b"one", b"two")
        assert await redefine(None, b"one")
        assert not await redefine(None, b"two")
        assert not await redefine(b"", b"two")
        assert await redefine(b"one", b"two")
        assert b"two" == await engine.ballots.definition(key(), now=NOW)
        assert not await redefine(b"two", b"three", NOW + 5)  # it has expired
        assert await redefine(None, b"three", NOW + 5)

    async def test_a_definition_can_clear_the_casts_in_the_same_step(self, engine: Engine) -> None:
        await cast(engine, "U1", "3")
        await engine.ballots.define(key(), b"one", Terms(), now=NOW, expires_at=END, clear=True)

        assert ([], b"one") == (await counts(engine), await engine.ballots.definition(key(), now=NOW))
        await cast(engine, "U1", "4")
        assert [("4", 1)] == await counts(engine)

    async def test_top_returns_the_first_choices_of_the_tally(self, engine: Engine) -> None:
        for number in range(6):
            await cast(engine, f"U{number}", "abcabb"[number])
        whole = await counts(engine)

        assert [whole[:n] for n in range(5)] == [await counts(engine, top=n) for n in range(5)]

    async def test_a_ballot_with_many_choices_is_sorted_like_a_small_one(self, engine: Engine) -> None:
        """More choices than an engine may handle specially."""
        await asyncio.gather(*(cast(engine, f"U{number}", f"c{number}") for number in range(700)))
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
        await asyncio.gather(*(cast(engine, f"U{number}", f"c{number}") for number in range(300)))
        await asyncio.gather(*(cast(engine, f"U{number}", f"c{298 + number % 2}") for number in range(298)))

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
