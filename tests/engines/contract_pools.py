"""The contract of pools: which items a draw hands out."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

import pytest

from emulator.engines.engine import Engine
from emulator.engines.pools import Count, Holding, Stock
from emulator.engines.shapes import NEVER, Key
from engines.pool_shorthand import assign, draw, draws, drop, fill, held, source, stocked
from engines.shorthand import END, EVERYWHERE, NOW, ODD, key

P, Q, R = key("p"), key("q"), key("r")
X, Y, Z = source("x"), source("y"), source("z")


P, Q, R = key("p"), key("q"), key("r")
X, Y, Z = source("x"), source("y"), source("z")


class PoolsContract:
    async def test_items_are_handed_out_in_list_order(self, engine: Engine) -> None:
        await fill(engine, ["b", "a"])
        await fill(engine, ["d", "c"])
        await assign(engine)

        assert [await draw(engine, str(n)) for n in range(6)] == ["b", "a", "d", "c", None, None]

    async def test_a_list_filled_in_uneven_steps_keeps_its_order(self, engine: Engine) -> None:
        items = [f"code {number}" for number in range(1500)]
        for start, end in ((0, 1), (1, 128), (128, 257), (257, 257), (257, 1257), (1257, 1500)):
            await fill(engine, items[start:end])
        await assign(engine)

        assert items == [await draw(engine, most=9999) for _ in items]
        assert await draw(engine, most=9999) is None

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

    async def test_a_repeated_item_is_handed_out_once(self, engine: Engine) -> None:
        await fill(engine, ["a", "a", "b", "a", "c", "b"])
        await assign(engine)

        assert await draws(engine, 9) == ["a", "b", "c"]

    async def test_an_absent_or_unfilled_pool_is_empty(self, engine: Engine) -> None:
        assert await draw(engine) is None

        await assign(engine)

        assert await draw(engine) is None
        assert await held(engine) is None
        assert await drop(engine) == 0

    async def test_a_user_gets_no_more_than_the_limit(self, engine: Engine) -> None:
        await stocked(engine, "abcdefgh")

        assert [await draw(engine, most=most) for most in (0, -1, 1, 1, 2, 2, 3)] == [
            None,
            None,
            "a",
            None,
            "b",
            None,
            "c",
        ]
        assert await draw(engine, "U2") == "d"
        assert await held(engine) == Holding(("a", "b", "c"), 3)
        assert await held(engine, "U2") == Holding(("d",), 1)

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

    async def test_concurrent_draws_hand_out_each_item_once(self, engine: Engine) -> None:
        await stocked(engine, [str(number) for number in range(150)])

        drawn = await draws(engine, 200)

        assert sorted(drawn, key=int) == [str(number) for number in range(150)]
        assert await drop(engine) == 150

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

    async def test_an_invalid_text_does_not_affect_concurrent_draws(self, engine: Engine) -> None:
        await stocked(engine, "abc")

        done = await asyncio.gather(
            draw(engine, "U1"),
            draw(engine, "\ud800"),
            draw(engine, "U1", key("\ud800")),
            fill(engine, ["a"], source("\ud800")),
            assign(engine, {Q: source("\ud800")}),
            draw(engine, "U2"),
            return_exceptions=True,
        )

        assert ["a", *[UnicodeEncodeError] * 4, "b"] == [each if isinstance(each, str) else type(each) for each in done]
        assert await drop(engine) == 2

    async def test_a_cancelled_draw_does_not_affect_others(self, engine: Engine) -> None:
        await stocked(engine, [str(number) for number in range(20)])
        tasks = [asyncio.create_task(draw(engine, f"U{number}")) for number in range(10)]
        await asyncio.sleep(0)
        tasks[3].cancel()

        drawn = [item for item in await asyncio.gather(*tasks, return_exceptions=True) if isinstance(item, str)]

        assert len(set(drawn)) == len(drawn) == 9
        cancelled = await held(engine, "U3")
        assert await drop(engine) == 9 + (cancelled is not None)
        assert cancelled is None or cancelled.items[0] not in drawn

    async def test_pools_refuse_all_channels(self, engine: Engine) -> None:
        for operation in (
            fill(engine, ["a"], EVERYWHERE),
            assign(engine, {EVERYWHERE: X}),
            assign(engine, {P: EVERYWHERE}),
            draw(engine, "U1", EVERYWHERE),
            held(engine, "U1", EVERYWHERE),
            drop(engine, EVERYWHERE),
            engine.pools.stocks([EVERYWHERE], now=NOW),
        ):
            with pytest.raises(ValueError, match="channel"):
                await operation

    async def test_stocks_are_the_lists_of_live_pools(self, engine: Engine) -> None:
        await assign(engine, {P: X}, note=b"\x00one")
        await assign(engine, {Q: Y}, note=b"", expires_at=END + 1)

        assert {P: Stock(X, b"\x00one"), Q: Stock(Y, b"")} == await engine.pools.stocks([P, Q, R], now=END - 1)
        assert {Q: Stock(Y, b"")} == await engine.pools.stocks([P, Q, R], now=END)
        assert {} == await engine.pools.stocks([], now=NOW)

    async def test_counts_are_the_progress_of_live_pools(self, engine: Engine) -> None:
        await fill(engine, "abc", X)
        await fill(engine, "za", Y)
        await assign(engine, {P: X, Q: Y})
        assert ["a", "z", "b"] == [await draw(engine, user, pool) for user, pool in (("U1", P), ("U1", Q), ("U2", P))]

        assert {P: Count(2, 1), Q: Count(1, 1)} == await engine.pools.counts([P, Q, R], now=NOW)
        assert await draw(engine, "U2", Q) is None  # `a` is spent
        assert {Q: Count(1, 0)} == await engine.pools.counts([Q], now=NOW)
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

    async def test_handed_out_items_stay_when_the_list_is_replaced(self, engine: Engine) -> None:
        await fill(engine, "abcd", X)
        await fill(engine, "xbaydcz", Y)
        await assign(engine, {P: X})
        assert await draws(engine, 3, P) == ["a", "b", "c"]

        await assign(engine, {P: Y})

        assert await held(engine, "0", P) == Holding(("a",), 1)
        assert [await draw(engine, "0", P, most=most) for most in (1, 2)] == [None, "x"]
        assert await held(engine, "0", P) == Holding(("a", "x"), 2)
        assert await draws(engine, 9, P, name="V") == ["y", "d", "z"]
        assert await drop(engine, P) == 7

    async def test_a_replaced_list_is_deleted(self, engine: Engine) -> None:
        await fill(engine, "abc", X)
        await assign(engine, {P: X})
        await assign(engine, {P: Y})
        await assign(engine, {P: X})

        assert await draw(engine, "U1", P) is None

        await assign(engine, {P: Y})
        await fill(engine, "d", X)
        await assign(engine, {P: X})

        assert await draws(engine, 3, P) == ["d"]

    async def test_assigning_the_same_list_keeps_the_position(self, engine: Engine) -> None:
        await fill(engine, "abc", X)
        await assign(engine, {P: X}, note=b"1")
        assert await draws(engine, 1, P) == ["a"]

        await assign(engine, {P: X}, note=b"2", expires_at=END + 1)

        assert {P: Stock(X, b"2")} == await engine.pools.stocks([P], now=END)
        assert await draws(engine, 9, P, now=END, name="V") == ["b", "c"]

    async def test_a_used_list_can_be_neither_filled_nor_assigned_elsewhere(self, engine: Engine) -> None:
        await fill(engine, "ab", X)
        await assign(engine, {P: X})
        await assign(engine, {R: Z})
        for refused in (
            fill(engine, "c", X),
            fill(engine, "c", Z),
            assign(engine, {Q: X}),
            assign(engine, {R: Y, Q: X}),
        ):
            with pytest.raises(ValueError, match="list"):
                await refused
        with pytest.raises(ValueError, match="list"):
            await assign(engine, {Q: Y, key("s"): Y})

        assert {P: Stock(X, b""), R: Stock(Z, b"")} == await engine.pools.stocks([P, Q, R, key("s")], now=NOW)
        assert await draws(engine, 5, P) == ["a", "b"]

    async def test_the_list_of_a_dropped_or_expired_pool_can_be_filled_again(self, engine: Engine) -> None:
        for pool, of, now in ((P, X, NOW), (Q, Y, END)):
            await fill(engine, "abc", of)
            await assign(engine, {pool: of})
            if pool == P:
                await drop(engine, pool)
            await fill(engine, pool.name, of, now=now, expires_at=NEVER)
            other = pool._replace(user="other")
            await assign(engine, {other: of}, now=now, expires_at=NEVER)

            assert await draws(engine, 3, other, now=now) == [pool.name]

    async def test_a_list_lives_until_its_own_expiry_unless_a_pool_uses_it(self, engine: Engine) -> None:
        for of, now in ((X, END - 1), (Y, END)):
            await fill(engine, "a", of, expires_at=NOW + 1)
            await fill(engine, "b", of, expires_at=END)
            await assign(engine, {P._replace(user=of.name): of}, now=now, expires_at=END + 9)

        assert await draws(engine, 3, P._replace(user="x"), now=END + 8) == ["a", "b"]
        assert await draws(engine, 3, P._replace(user="y"), now=END + 8) == []

    async def test_an_expired_list_starts_empty(self, engine: Engine) -> None:
        await fill(engine, "abc", X, expires_at=END)
        await fill(engine, "d", X, now=END, expires_at=END + 9)
        await assign(engine, {P: X}, now=END, expires_at=END + 9)

        assert await draws(engine, 3, P, now=END) == ["d"]
