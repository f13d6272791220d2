"""What every engine promises of rosters."""

from __future__ import annotations

import asyncio

import pytest

from emulator.engines.base import NEVER
from emulator.engines.engine import Engine
from engines.pool_shorthand import add_members, listing
from engines.shorthand import END, EVERYWHERE, NOW, ODD, Open, key

A, B, C = key("a"), key("b"), key("c")


class RostersContract:
    async def test_a_listing_names_the_rosters_that_any_of_the_names_is_on(self, engine: Engine) -> None:
        await add_members(engine, ["x", "y"], A)
        await add_members(engine, ["y", "z"], B)
        await add_members(engine, ["w"], C)

        assert await listing(engine, "y") == {"a", "b"}
        assert await listing(engine, "x", "z", "nobody") == {"a", "b"}
        assert await listing(engine, "w", "x", beside=B) == {"a", "c"}
        assert await listing(engine, "nobody") == set()
        assert await listing(engine) == set()

    async def test_nobody_is_on_an_absent_or_empty_roster(self, engine: Engine) -> None:
        assert await listing(engine, "x", "") == set()

        await add_members(engine, [], A)

        assert await listing(engine, "x", "") == set()

    async def test_names_add_up_and_each_is_there_once(self, engine: Engine) -> None:
        for names in (["x", "x"], ["x", "y"], []):
            await add_members(engine, names, A)

        assert [await listing(engine, name) for name in "xy"] == [{"a"}, {"a"}]

    async def test_rosters_of_other_shelves_owners_places_and_holders_are_apart(self, engine: Engine) -> None:
        others = [A._replace(kind="s"), A._replace(owner="o"), A._replace(channel="p"), A._replace(user="h")]
        for number, roster in enumerate([A, *others]):
            await add_members(engine, ["all", f"{number}"], roster._replace(name=f"roster {number}"))

        for number, roster in enumerate([A, *others]):
            assert await listing(engine, "all", beside=roster) == {f"roster {number}"}
            assert await listing(engine, *(f"{n}" for n in range(5) if n != number), beside=roster) == set()

    async def test_odd_names_are_kept_apart(self, engine: Engine) -> None:
        for odd in ODD:
            await add_members(engine, [odd, odd + "end"], key(odd))

        for odd in ODD:
            assert await listing(engine, odd) == {odd}
            assert await listing(engine, odd + "end") == {odd}

    async def test_odd_places_are_kept_apart(self, engine: Engine) -> None:
        for odd in ODD:
            await add_members(engine, ["x"], key(odd, channel=odd, owner=odd))

        assert [{odd} for odd in ODD] == [await listing(engine, "x", beside=key(channel=odd, owner=odd)) for odd in ODD]

    async def test_many_names_are_found(self, engine: Engine) -> None:
        names = [f"name {number}" for number in range(3000)]
        await asyncio.gather(*(add_members(engine, names[start : start + 500], A) for start in range(0, 3000, 500)))
        await asyncio.gather(*(add_members(engine, names[start : start + 10], B) for start in range(0, 3000, 100)))

        assert [await listing(engine, name) for name in names] == [
            {"a", "b"} if number % 100 < 10 else {"a"} for number, _ in enumerate(names)
        ]

    async def test_a_roster_lives_until_the_millisecond_before_its_end(self, engine: Engine) -> None:
        await add_members(engine, ["x"], A, expires_at=END)
        await add_members(engine, ["x"], B, expires_at=END + 1)

        assert [await listing(engine, "x", now=now) for now in (END - 1, END, END + 1)] == [{"a", "b"}, {"b"}, set()]

    async def test_enlisting_moves_the_end_of_the_whole_roster(self, engine: Engine) -> None:
        await add_members(engine, ["x"], A, expires_at=END)
        await add_members(engine, ["y"], A, expires_at=END + 9)
        await add_members(engine, ["x"], B, expires_at=END + 9)
        await add_members(engine, [], B, expires_at=END)

        assert await listing(engine, "x", now=END + 8) == {"a"}

    async def test_a_roster_past_its_end_begins_anew(self, engine: Engine) -> None:
        await add_members(engine, ["x"], A, expires_at=END)
        await add_members(engine, ["y"], A, now=END, expires_at=NEVER)

        assert [await listing(engine, name, now=END) for name in "xy"] == [set(), {"a"}]

    async def test_a_dropped_roster_is_forgotten_and_can_be_made_anew(self, engine: Engine) -> None:
        for roster in (A, B, C):
            await add_members(engine, ["x", roster.name], roster)

        await engine.rosters.drop([A, C, key("absent"), A], now=NOW)

        assert await listing(engine, "x", "a", "c") == {"b"}
        await add_members(engine, ["y"], A)
        assert [await listing(engine, name) for name in "xay"] == [{"b"}, set(), {"a"}]

    async def test_purging_touches_only_what_is_gone_and_reports_nothing(self, engine: Engine) -> None:
        names = [f"name {number}" for number in range(2500)]
        for roster, end in ((A, END), (B, NEVER), (C, NEVER)):
            await add_members(engine, names, roster, expires_at=end)
        await engine.rosters.drop([B], now=NOW)

        for _ in range(2):
            assert await engine.purge(now=END) == []
            await engine.tidy()

            assert await listing(engine, names[7], now=END) == {"c"}
            assert await listing(engine, names[-1], now=END) == {"c"}

        await add_members(engine, ["new"], B, now=END, expires_at=NEVER)
        assert [await listing(engine, name, now=END) for name in (names[3], "new")] == [{"c"}, {"b"}]

    async def test_rosters_are_of_their_namespace_and_forgotten_by_its_reset(self, engine: Engine, open: Open) -> None:
        async with open(namespace="other") as other:
            await add_members(engine, ["x"], A)
            await add_members(other, ["x"], B)
            assert [await listing(each, "x") for each in (engine, other)] == [{"a"}, {"b"}]

            await engine.reset()
            await engine.tidy()

            assert [await listing(each, "x") for each in (engine, other)] == [set(), {"b"}]
            await add_members(engine, ["y"], A)
            assert [await listing(engine, name) for name in "xy"] == [set(), {"a"}]

    async def test_a_refused_text_does_not_harm_the_names_beside_it(self, engine: Engine) -> None:
        done = await asyncio.gather(
            add_members(engine, ["x"], A),
            add_members(engine, ["y", "\ud800"], A),
            add_members(engine, ["y"], key("\ud800")),
            listing(engine, "\ud800"),
            add_members(engine, ["z"], A),
            return_exceptions=True,
        )

        assert [type(None), *[UnicodeEncodeError] * 3, type(None)] == [type(each) for each in done]
        assert [await listing(engine, name) for name in "xyz"] == [{"a"}, set(), {"a"}]

    async def test_rosters_need_one_place(self, engine: Engine) -> None:
        for operation in (
            add_members(engine, ["x"], EVERYWHERE),
            listing(engine, "x", beside=EVERYWHERE),
            engine.rosters.drop([EVERYWHERE], now=NOW),
        ):
            with pytest.raises(ValueError, match="channel"):
                await operation
