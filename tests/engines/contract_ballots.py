"""The contract of ballots where each voter has one cast."""

from __future__ import annotations

import asyncio

from emulator.engines.engine import Engine
from emulator.engines.shapes import EMPTY_TALLY, NEVER, BallotEntry, CastRequest, Tally, Terms
from engines.shorthand import END, EVERYWHERE, MANY, NOW, ODD, cast, choice_of, counts, entries, key


class BallotsContract:
    async def test_a_cast_returns_the_counts_including_itself(self, engine: Engine) -> None:
        await cast(engine, "U1", "3")

        done = await cast(engine, "U2", "5")

        assert (None, None, Tally((("3", 1), ("5", 1)), "5")) == done

    async def test_a_cast_returns_no_tally_unless_requested(self, engine: Engine) -> None:
        done = await engine.ballots.cast(key(), CastRequest("U1", "3"), now=NOW, expires_at=END)

        assert done == (None, None, EMPTY_TALLY)
        assert await counts(engine) == [("3", 1)]

    async def test_a_second_cast_replaces_the_first(self, engine: Engine) -> None:
        await cast(engine, "U1", "3")

        done = await cast(engine, "U1", "5")

        assert (None, "3", Tally((("5", 1),), "5")) == done
        assert await counts(engine) == [("5", 1)]

    async def test_casting_the_same_choice_again_keeps_the_count(self, engine: Engine) -> None:
        await cast(engine, "U1", "3")

        assert (None, "3", Tally((("3", 1),), "3")) == await cast(engine, "U1", "3")

    async def test_times_are_ignored_if_a_voter_has_one_cast(self, engine: Engine) -> None:
        await cast(engine, "U1", "3", times=4)

        assert await counts(engine) == [("3", 1)]
        assert [entry.times for entry in await entries(engine)] == [1]

    async def test_an_absent_ballot_reads_as_empty(self, engine: Engine) -> None:
        assert await engine.ballots.tally(key(), now=NOW, voter="U1") == EMPTY_TALLY
        assert await entries(engine) == []
        assert await engine.ballots.definition(key(), now=NOW) is None

    async def test_a_voter_without_casts_has_no_choice(self, engine: Engine) -> None:
        await cast(engine, "U1", "3")

        assert await choice_of(engine, "U2") is None

    async def test_a_ballot_is_alive_until_just_before_its_expiry(self, engine: Engine) -> None:
        await cast(engine, "U1", "3", expires_at=END)

        assert await counts(engine, now=END - 1) == [("3", 1)]
        assert await choice_of(engine, "U1", now=END - 1) == "3"
        assert len(await entries(engine, now=END - 1)) == 1
        assert await counts(engine, now=END) == []
        assert await choice_of(engine, "U1", now=END) is None
        assert await entries(engine, now=END) == []
        assert await counts(engine, EVERYWHERE, now=END) == []
        assert await entries(engine, EVERYWHERE, now=END) == []

    async def test_a_cast_extends_the_life_of_the_whole_ballot(self, engine: Engine) -> None:
        await cast(engine, "U1", "3", expires_at=NOW + 10)
        await cast(engine, "U2", "3", expires_at=NOW + 20)

        assert await counts(engine, now=NOW + 19) == [("3", 2)]

        await cast(engine, "U1", "3", expires_at=NOW + 5)

        assert await counts(engine, now=NOW + 19) == [("3", 2)]
        assert await counts(engine, now=NOW + 20) == []

    async def test_an_expired_ballot_starts_again(self, engine: Engine) -> None:
        await engine.ballots.define(key(), b"old", Terms(closes_at=END), now=NOW, expires_at=END)
        await cast(engine, "U1", "3")
        await cast(engine, "U2", "3")

        done = await cast(engine, "U1", "5", now=END, expires_at=END + 10)

        assert (None, None, Tally((("5", 1),), "5")) == done
        assert [entry.voter for entry in await entries(engine, now=END)] == ["U1"]
        assert await engine.ballots.definition(key(), now=END) is None

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

    async def test_dropping_an_absent_or_expired_ballot_is_allowed(self, engine: Engine) -> None:
        await engine.ballots.drop(key(), now=NOW)
        await cast(engine, "U1", "3", expires_at=NOW + 1)
        await engine.ballots.drop(key(), now=NOW + 1)
        await engine.ballots.drop(EVERYWHERE, now=NOW + 1)

        assert await counts(engine) == []

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

    async def test_a_new_definition_keeps_the_casts_and_their_expiry(self, engine: Engine) -> None:
        await cast(engine, "U1", "3", expires_at=END)
        await engine.ballots.define(key(), b"poll", Terms(), now=NOW, expires_at=NEVER)

        assert await counts(engine, now=END - 1) == [("3", 1)]
        assert await engine.ballots.definition(key(), now=END - 1) == b"poll"
        assert await counts(engine, now=END) == []
        assert await engine.ballots.definition(key(), now=END) is None

    async def test_a_definition_sets_the_expiry_of_a_ballot_without_casts(self, engine: Engine) -> None:
        await engine.ballots.define(key(), b"one", Terms(), now=NOW, expires_at=END)
        await engine.ballots.define(key(), b"two", Terms(), now=NOW, expires_at=END + 10)

        assert await engine.ballots.definition(key(), now=END + 9) == b"two"

    async def test_defining_an_expired_ballot_starts_it_again(self, engine: Engine) -> None:
        await cast(engine, "U1", "3", expires_at=END)

        await engine.ballots.define(key(), b"new", Terms(), now=END, expires_at=END + 10)

        assert await counts(engine, now=END) == []
        assert await entries(engine, now=END) == []

    async def test_a_definition_is_replaced_only_in_place_of_the_expected_one(self, engine: Engine) -> None:
        async def redefine(expected: bytes | None, new: bytes, now: int = NOW) -> bool:
            return await engine.ballots.redefine(key(), expected, new, Terms(), now=now, expires_at=now + 5)

        assert not await redefine(b"one", b"two")
        assert await redefine(None, b"one")
        assert not await redefine(None, b"two")
        assert not await redefine(b"", b"two")
        assert await redefine(b"one", b"two")
        assert b"two" == await engine.ballots.definition(key(), now=NOW)
        assert not await redefine(b"two", b"three", NOW + 5)  # it has expired
        assert await redefine(None, b"three", NOW + 5)

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
