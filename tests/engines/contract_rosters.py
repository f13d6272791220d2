"""The contract of rosters."""

from __future__ import annotations

import asyncio

import pytest

from emulator.engines.engine import Engine
from emulator.engines.shapes import NEVER
from engines.pool_shorthand import add_members, listing
from engines.shorthand import END, EVERYWHERE, NOW, ODD, Open, key

A, B, C = key("a"), key("b"), key("c")


class RostersContract:
    async def test_a_listing_returns_the_rosters_that_have_any_member(self, engine: Engine) -> None:
        await add_members(engine, ["x", "y"], A)
        await add_members(engine, ["y", "z"], B)
        await add_members(engine, ["w"], C)

        assert await listing(engine, "y") == {"a", "b"}
        assert await listing(engine, "x", "z", "absent") == {"a", "b"}
        assert await listing(engine, "w", "x", beside=B) == {"a", "c"}
        assert await listing(engine, "absent") == set()
        assert await listing(engine) == set()

    async def test_an_absent_or_empty_roster_has_no_members(self, engine: Engine) -> None:
        assert await listing(engine, "x", "") == set()

        await add_members(engine, [], A)

        assert await listing(engine, "x", "") == set()

    async def test_members_add_up_without_duplicates(self, engine: Engine) -> None:
        for names in (["x", "x"], ["x", "y"], []):
            await add_members(engine, names, A)

        assert [await listing(engine, name) for name in "xy"] == [{"a"}, {"a"}]

    async def test_adding_members_returns_how_many_are_new(self, engine: Engine) -> None:
        many = [f"{number}" for number in range(2500)]

        added = [await add_members(engine, names, A) for names in (["x", "y", "x"], ["y", "z"], [], many, many)]

        assert added == [2, 1, 0, 2500, 0]
        assert await add_members(engine, ["x"], B) == 1

    async def test_a_listing_tells_the_members_apart(self, engine: Engine) -> None:
        await add_members(engine, ["x", "y"], A)
        await add_members(engine, ["y"], B)
        await add_members(engine, ["z"], C, expires_at=NOW + 1)

        found = await engine.rosters.listing(key(""), ["z", "y", "absent", "x"], now=NOW + 1)

        assert found == {"x": {"a"}, "y": {"a", "b"}}

    async def test_a_listing_omits_rosters_with_another_kind_owner_channel_or_user(self, engine: Engine) -> None:
        others = [A._replace(kind="s"), A._replace(owner="o"), A._replace(channel="p"), A._replace(user="h")]
        for number, roster in enumerate([A, *others]):
            await add_members(engine, ["all", f"{number}"], roster._replace(name=f"roster {number}"))

        for number, roster in enumerate([A, *others]):
            assert await listing(engine, "all", beside=roster) == {f"roster {number}"}
            assert await listing(engine, *(f"{n}" for n in range(5) if n != number), beside=roster) == set()

    async def test_unusual_names_stay_distinct(self, engine: Engine) -> None:
        for odd in ODD:
            await add_members(engine, [odd, odd + "end"], key(odd))

        for odd in ODD:
            assert await listing(engine, odd) == {odd}
            assert await listing(engine, odd + "end") == {odd}

    async def test_unusual_channels_stay_distinct(self, engine: Engine) -> None:
        for odd in ODD:
            await add_members(engine, ["x"], key(odd, channel=odd, owner=odd))

        assert [{odd} for odd in ODD] == [await listing(engine, "x", beside=key(channel=odd, owner=odd)) for odd in ODD]

    async def test_many_members_are_found(self, engine: Engine) -> None:
        names = [f"name {number}" for number in range(3000)]
        await asyncio.gather(*(add_members(engine, names[start : start + 500], A) for start in range(0, 3000, 500)))
        await asyncio.gather(*(add_members(engine, names[start : start + 10], B) for start in range(0, 3000, 100)))

        assert [await listing(engine, name) for name in names] == [
            {"a", "b"} if number % 100 < 10 else {"a"} for number, _ in enumerate(names)
        ]

    async def test_a_roster_is_alive_until_just_before_its_expiry(self, engine: Engine) -> None:
        await add_members(engine, ["x"], A, expires_at=END)
        await add_members(engine, ["x"], B, expires_at=END + 1)

        assert [await listing(engine, "x", now=now) for now in (END - 1, END, END + 1)] == [{"a", "b"}, {"b"}, set()]

    async def test_adding_members_extends_the_life_of_the_whole_roster(self, engine: Engine) -> None:
        await add_members(engine, ["x"], A, expires_at=END)
        await add_members(engine, ["y"], A, expires_at=END + 9)
        await add_members(engine, ["x"], B, expires_at=END)
        await add_members(engine, [], B, expires_at=END - 9)

        assert await listing(engine, "x", now=END - 1) == {"a", "b"}
        assert await listing(engine, "x", now=END + 8) == {"a"}

    async def test_an_expired_roster_starts_empty(self, engine: Engine) -> None:
        await add_members(engine, ["x"], A, expires_at=END)
        await add_members(engine, ["y"], A, now=END, expires_at=NEVER)

        assert [await listing(engine, name, now=END) for name in "xy"] == [set(), {"a"}]

    async def test_a_dropped_roster_can_be_created_again(self, engine: Engine) -> None:
        for roster in (A, B, C):
            await add_members(engine, ["x", roster.name], roster)

        await engine.rosters.drop([A, C, key("absent"), A], now=NOW)

        assert await listing(engine, "x", "a", "c") == {"b"}
        await add_members(engine, ["y"], A)
        assert [await listing(engine, name) for name in "xay"] == [{"b"}, set(), {"a"}]

    async def test_a_purge_keeps_live_rosters_and_reports_none(self, engine: Engine) -> None:
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

    async def test_a_reset_deletes_the_rosters_of_its_own_namespace(self, engine: Engine, open: Open) -> None:
        async with open(namespace="other") as other:
            await add_members(engine, ["x"], A)
            await add_members(other, ["x"], B)
            assert [await listing(each, "x") for each in (engine, other)] == [{"a"}, {"b"}]

            await engine.reset()
            await engine.tidy()

            assert [await listing(each, "x") for each in (engine, other)] == [set(), {"b"}]
            await add_members(engine, ["y"], A)
            assert [await listing(engine, name) for name in "xy"] == [set(), {"a"}]

    async def test_an_invalid_text_does_not_affect_other_members(self, engine: Engine) -> None:
        done = await asyncio.gather(
            add_members(engine, ["x"], A),
            add_members(engine, ["y", "\ud800"], A),
            add_members(engine, ["y"], key("\ud800")),
            listing(engine, "\ud800"),
            add_members(engine, ["z"], A),
            return_exceptions=True,
        )

        assert [int, *[UnicodeEncodeError] * 3, int] == [type(each) for each in done]
        assert [await listing(engine, name) for name in "xyz"] == [{"a"}, set(), {"a"}]

    async def test_rosters_refuse_all_channels(self, engine: Engine) -> None:
        for operation in (
            add_members(engine, ["x"], EVERYWHERE),
            listing(engine, "x", beside=EVERYWHERE),
            engine.rosters.drop([EVERYWHERE], now=NOW),
        ):
            with pytest.raises(ValueError, match="channel"):
                await operation
