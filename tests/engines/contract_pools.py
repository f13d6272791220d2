"""The contract of pools: which items a draw hands out."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

import pytest

from emulator.core.keys import NEVER, Key
from emulator.storage.engine import Engine
from emulator.storage.pools import Holding, Progress, Stock
from engines.pool_shorthand import assign, draw, draws, fill, held, source, stocked
from engines.shorthand import END, NOW, ODD, key

P, Q, R = key("p"), key("q"), key("r")
X, Y, Z = source("x"), source("y"), source("z")


class PoolsContract:
    async def test_a_list_is_read_in_parts_from_any_position(self, engine: Engine) -> None:
        items = [f"code {number}" for number in range(5000)]
        for start, end in ((0, 1), (1, 128), (128, 257), (257, 1257), (1257, 5000)):
            await fill(engine, items[start:end])

        async def read(at: int, now: int = NOW) -> list[str]:
            return list(await engine.pools.items(source(), at, now=now))

        found: list[str] = []
        while part := await read(len(found)):
            assert len(part) < 5000
            found += part

        assert items == found
        for at in (1, 127, 128, 129, 400, 4999):
            part = await read(at)
            assert part
            assert items[at : at + len(part)] == part
        assert [[], [], []] == [await read(5000), await read(9999), await read(0, now=END)]
        assert [] == await engine.pools.items(source("unknown"), 0, now=NOW)

    async def test_items_are_any_text_without_nul(self, engine: Engine) -> None:
        items = [odd for odd in ODD if "\0" not in odd]
        await fill(engine, items)
        await assign(engine)

        assert items == [await draw(engine, odd, most=9) for odd in ODD[: len(items)]]
        assert await draw(engine, "one more") is None

    async def test_an_item_with_nul_refuses_the_whole_call(self, engine: Engine) -> None:
        await fill(engine, ["a"])
        for refused in (["b", "c\0d"], ["\0"], ["b", "", "\0"], ["b"] * 500 + ["c\0"]):
            with pytest.raises(ValueError, match="NUL"):
                await fill(engine, refused)
        with pytest.raises(UnicodeEncodeError):
            await fill(engine, ["b"] * 500 + ["\ud800"])
        await assign(engine)

        assert await draws(engine, 5) == ["a"]

    async def test_the_note_of_a_pool_limits_each_draw(self, engine: Engine) -> None:
        notes: list[bytes] = []

        def limit(note: bytes) -> int:
            notes.append(note)
            return int(note)

        for note in (b"1", b"0", b"2"):
            await fill(engine, [f"a{note!r}", f"b{note!r}", f"c{note!r}"], source(f"{note!r}"))
            await assign(engine, {P: source(f"{note!r}")}, note=note)
            drawn = [await engine.pools.draw(P, "U", limit=limit, now=NOW, held=True) for _ in range(2)]
            held = await engine.pools.held([P], "U", now=NOW)

            assert drawn[-1].held == (held[P].items if held else ())
            assert notes[-1] == note
            assert held[P].current == max(1, int(note))
        assert await draw(engine, "U", Q) is None

    async def test_a_pool_hands_out_another_list_from_its_first_item_on(self, engine: Engine) -> None:
        for items, of in (("abc", X), ("xyz", Y)):
            await fill(engine, items, of)
            await assign(engine, {P: of})

            assert await draws(engine, 2, P, name=items) == list(items[:2])

    async def test_a_pool_and_its_list_end_together_at_the_latest_of_their_expiries(self, engine: Engine) -> None:
        for pool, of, list_ends, pool_ends in ((P, X, 5, 0), (Q, Y, 0, 5)):
            await fill(engine, [of.name], of, expires_at=END + list_ends)
            for ends in (pool_ends, 0):
                await assign(engine, {pool: of}, expires_at=END + ends)

        assert ["x", "y"] == [await draw(engine, "U1", pool, now=END + 4) for pool in (P, Q)]
        assert {} == await engine.pools.stocks([P, Q], now=END + 5)

    async def test_a_limit_that_raises_hands_out_nothing(self, engine: Engine) -> None:
        await stocked(engine, ["a"], P)

        for _ in range(2):
            with pytest.raises(ZeroDivisionError):
                await engine.pools.draw(P, "U", limit=lambda _: 1 // 0, now=NOW)
        assert ["a", None] == [await draw(engine, name, P) for name in "UV"]

    async def test_discarding_deletes_unused_lists_only(self, engine: Engine) -> None:
        await fill(engine, ["a"], X)
        await fill(engine, ["b"], Y)
        await assign(engine, {P: X})

        await engine.pools.discard([X, Y, Z, Y], now=NOW)
        await assign(engine, {Q: Y})

        assert await draw(engine, "U", P, most=9) == "a"
        assert await draw(engine, "U", Q, most=9) is None

    async def test_concurrent_draws_of_one_user_respect_the_limit(self, engine: Engine) -> None:
        await stocked(engine, "abcdefgh")

        drawn = await asyncio.gather(*(draw(engine, most=3) for _ in range(20)))

        assert sorted(item for item in drawn if item) == ["a", "b", "c"]
        assert await held(engine) == Holding(("a", "b", "c"), 3)

    async def test_unusual_keys_and_users_stay_distinct(self, engine: Engine) -> None:
        pools = [key(odd, channel=odd) for odd in ODD] + [key(owner="x"), key(user="x"), P._replace(kind="x")]
        for number, pool in enumerate(pools):
            await stocked(engine, [f"{number}"], pool)
        for number, pool in enumerate(pools):
            assert await draw(engine, ODD[number % len(ODD)], pool) == f"{number}"

        for number, odd in enumerate(ODD):
            mine = {pool: Holding((f"{n}",), 1) for n, pool in enumerate(pools) if n % len(ODD) == number}
            assert mine == await engine.pools.held(pools, odd, now=NOW)

    async def test_pools_of_different_families_may_hand_out_equal_items(self, engine: Engine) -> None:
        pools = (P, P._replace(kind="x"), P._replace(owner="x"), P._replace(channel="x"), P._replace(user="x"))
        for pool in pools:
            await stocked(engine, "ab", pool)

        assert [await draw(engine, "U1", pool) for pool in pools] == ["a"] * 5
        assert [await draw(engine, "U1", pool, most=2) for pool in pools] == ["b"] * 5

    async def test_counts_are_the_progress_of_live_pools(self, engine: Engine) -> None:
        await fill(engine, "abc", X)
        await fill(engine, "za", Y)
        await assign(engine, {P: X, Q: Y})
        assert ["a", "z", "b"] == [await draw(engine, user, pool) for user, pool in (("U1", P), ("U1", Q), ("U2", P))]

        assert {P: Progress(2, 1), Q: Progress(1, 1)} == await engine.pools.counts([P, Q, R], now=NOW)
        assert await draw(engine, "U2", Q) is None  # `a` is spent
        assert {Q: Progress(1, 0)} == await engine.pools.counts([Q], now=NOW)
        assert {} == await engine.pools.counts([P, Q], now=END)

    async def test_a_change_sees_the_live_pools_and_writes_any_of_them(self, engine: Engine) -> None:
        await assign(engine, {P: X, Q: Y}, note=b"old")
        await fill(engine, ["z"], Z)
        seen: list[Mapping[Key, Stock]] = []

        def change(live: Mapping[Key, Stock]) -> Mapping[Key, Stock]:
            seen.append(dict(live))
            return {Q: Stock(Z, b"new")}

        await engine.pools.assign([P, Q, R], change, now=NOW, expires_at=END + 9)

        assert {P: Stock(X, b"old"), Q: Stock(Y, b"old")} == seen[-1]
        assert {P: Stock(X, b"old"), Q: Stock(Z, b"new")} == await engine.pools.stocks([P, Q, R], now=NOW)
        assert {Q: Stock(Z, b"new")} == await engine.pools.stocks([P, Q, R], now=END)
        assert [await draw(engine, "U1", pool) for pool in (P, Q, R)] == [None, "z", None]

    async def test_nothing_is_assigned_if_a_change_raises(self, engine: Engine) -> None:
        await fill(engine, "ab", X)
        await fill(engine, "cd", Y)
        await assign(engine, {P: X}, note=b"old")

        def refuse(live: Mapping[Key, Stock]) -> Mapping[Key, Stock]:
            raise LookupError(str(len(live)))

        with pytest.raises(LookupError, match="1"):
            await engine.pools.assign([P, Q], refuse, now=NOW, expires_at=NEVER)

        assert {P: Stock(X, b"old")} == await engine.pools.stocks([P, Q], now=NOW)
        assert await engine.pools.stocks([P], now=END) == {}

    async def test_an_assignment_may_not_write_other_keys(self, engine: Engine) -> None:
        with pytest.raises(ValueError, match="keys"):
            await engine.pools.assign([P], lambda _: {P: Stock(X, b""), Q: Stock(Y, b"")}, now=NOW, expires_at=END)

        assert await engine.pools.stocks([P, Q], now=NOW) == {}

    async def test_concurrent_assignments_see_each_other(self, engine: Engine) -> None:
        def next_one(live: Mapping[Key, Stock]) -> Mapping[Key, Stock]:
            number = int(live[P].note) + 1 if live else 1
            return {P: Stock(source(str(number)), b"%d" % number)}

        await asyncio.gather(*(engine.pools.assign([P], next_one, now=NOW, expires_at=END) for _ in range(30)))

        assert {P: Stock(source("30"), b"30")} == await engine.pools.stocks([P], now=NOW)

    @pytest.mark.parametrize("removed_by", ["reset", "expiry", "nothing"])
    async def test_lists_are_assigned_only_if_they_still_hold_all_their_items(
        self, engine: Engine, removed_by: str
    ) -> None:
        await fill(engine, "ab", X, expires_at=END)
        if removed_by == "reset":
            await engine.reset()
        now = END if removed_by == "expiry" else NOW
        await fill(engine, "c", X, now=now, expires_at=END + 9)
        await fill(engine, "z", Y, now=now, expires_at=END + 9)
        change, sizes = {P: Stock(X, b""), Q: Stock(Y, b"")}, {X: 3, Y: 1}

        done = await engine.pools.assign([P, Q], lambda _: change, now=now, expires_at=END + 9, sizes=sizes)

        assert done == (removed_by == "nothing")
        assert (change if done else {}) == await engine.pools.stocks([P, Q], now=now)
