"""The contract of rosters."""

from __future__ import annotations

import asyncio

from emulator.core.keys import NEVER
from emulator.storage.engine import Engine
from emulator.storage.pools import RosterInfo
from engines.pool_shorthand import add_members, all_rosters, annotate, listing
from engines.shorthand import END, NOW, ODD, key, purged

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

    async def test_members_add_up_without_duplicates(self, engine: Engine) -> None:
        for names in (["x", "x"], ["x", "y"], []):
            await add_members(engine, names, A)

        assert [await listing(engine, name) for name in "xy"] == [{"a"}, {"a"}]

    async def test_a_listing_tells_the_members_apart(self, engine: Engine) -> None:
        await add_members(engine, ["x", "y"], A)
        await add_members(engine, ["y"], B)
        await add_members(engine, ["z"], C, expires_at=NOW + 1)

        found = await engine.rosters.listing(key(""), ["z", "y", "absent", "x"], now=NOW + 1)

        assert found == [RosterInfo("a", b"", ["y", "x"]), RosterInfo("b", b"", ["y"])]

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

    async def test_many_members_are_found(self, engine: Engine) -> None:
        names = [f"name {number}" for number in range(3000)]
        await asyncio.gather(*(add_members(engine, names[start : start + 500], A) for start in range(0, 3000, 500)))
        await asyncio.gather(*(add_members(engine, names[start : start + 10], B) for start in range(0, 3000, 100)))

        for number in range(0, 3000, 7):
            assert await listing(engine, names[number]) == ({"a", "b"} if number % 100 < 10 else {"a"})

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
            assert await purged(engine, now=END) == []
            await engine.tidy()

            assert await listing(engine, names[7], now=END) == {"c"}
            assert await listing(engine, names[-1], now=END) == {"c"}

        await add_members(engine, ["new"], B, now=END, expires_at=NEVER)
        assert [await listing(engine, name, now=END) for name in (names[3], "new")] == [{"c"}, {"b"}]

    async def test_a_note_moves_its_roster_to_the_end_of_the_group(self, engine: Engine) -> None:
        for roster in (A, B, C):
            await add_members(engine, ["x"], roster)

        noted = [await annotate(engine, note, roster) for note, roster in ((b"1", B), (b"\x00|%", A), (b"2", B))]

        assert noted == [True, True, True]
        found = await engine.rosters.listing(key(""), ["x"], now=NOW)
        assert found == [RosterInfo("c", b"", ["x"]), RosterInfo("a", b"\x00|%", ["x"]), RosterInfo("b", b"2", ["x"])]

    async def test_an_absent_or_expired_roster_gets_no_note(self, engine: Engine) -> None:
        await add_members(engine, ["x"], A, expires_at=END)
        await add_members(engine, ["x"], B)
        await engine.rosters.drop([B], now=NOW)

        noted = [await annotate(engine, b"1", each, now=END, expires_at=NEVER) for each in (A, B, C)]

        assert noted == [False, False, False]
        assert [] == await engine.rosters.listing(key(""), ["x"], now=END)

    async def test_a_note_extends_the_life_of_its_roster(self, engine: Engine) -> None:
        for end, roster in ((END, A), (END + 9, B)):
            await add_members(engine, ["x"], roster, expires_at=end)
        await annotate(engine, b"1", A, expires_at=END + 1)
        await annotate(engine, b"2", B, expires_at=END)

        assert [await listing(engine, "x", now=now) for now in (END, END + 1)] == [{"a", "b"}, {"b"}]

    async def test_all_rosters_of_a_group_are_found_with_their_notes(self, engine: Engine) -> None:
        for number, odd in enumerate(ODD):
            await add_members(engine, ["x"], key(odd), expires_at=END + number % 2)
            await annotate(engine, odd.encode(), key(odd))
        await add_members(engine, ["x"], key("other", channel="p"))
        many = {f"name {number}": b"" for number in range(250)}
        await asyncio.gather(*(add_members(engine, [], key(name, owner="o")) for name in many))

        assert await all_rosters(engine, key("")) == {odd: odd.encode() for odd in ODD}
        assert await all_rosters(engine, key(""), now=END) == {odd: odd.encode() for odd in ODD[1::2]}
        assert await all_rosters(engine, key("", owner="o")) == many

    async def test_a_removed_roster_leaves_nothing_at_its_members(self, engine: Engine) -> None:
        names = [f"name {number}" for number in range(600)]
        for roster in (A, B, C):
            await add_members(engine, names, roster)
        await annotate(engine, b"1", B)
        await engine.rosters.drop([A, C], now=NOW)
        await engine.tidy()

        assert [RosterInfo("b", b"1", names)] == await engine.rosters.listing(key(""), names, now=NOW)
        await engine.rosters.drop([B], now=NOW)
        await engine.tidy()
        assert [] == await engine.rosters.listing(key(""), names, now=NOW)
        await add_members(engine, names[:1], B)
        assert [RosterInfo("b", b"", names[:1])] == await engine.rosters.listing(key(""), names, now=NOW)
