"""The contract of handed-out items: who has them, how long the history lasts, and the effect of a drop."""

from __future__ import annotations

import asyncio

from emulator.engines.engine import Engine
from emulator.engines.pools import Holding
from emulator.engines.shapes import NEVER, Expired
from engines.pool_shorthand import assign, draw, draws, drop, fill, held, source, stocked
from engines.shorthand import END, NOW, LoopPasses, Open, key

P, Q, R = key("p"), key("q"), key("r")
X, Y, Z = source("x"), source("y"), source("z")


P, Q, R = key("p"), key("q"), key("r")
X = source("x")


class HoldingsContract:
    async def test_a_user_holds_items_in_the_order_of_the_draws(self, engine: Engine) -> None:
        await stocked(engine, "dacb", P)
        await stocked(engine, "x", Q)
        await stocked(engine, "y", R)
        for user in ("U1", "U2", "U1"):
            await draw(engine, user, P, most=2)
        await draw(engine, "U1", Q)

        assert await engine.pools.held([R, Q, P], "U1", now=NOW) == {P: Holding(("d", "c"), 2), Q: Holding(("x",), 1)}
        assert await engine.pools.held([P], "U3", now=NOW) == {}
        assert await engine.pools.held([], "U1", now=NOW) == {}

    async def test_a_drop_returns_how_many_items_each_live_pool_handed_out(self, engine: Engine) -> None:
        await stocked(engine, "abc", P)
        await stocked(engine, "abc", Q)
        await stocked(engine, "abc", R, expires_at=NOW + 1)
        await draws(engine, 2, P)
        await draws(engine, 2, R)

        assert await engine.pools.drop([P, Q, R, key("absent"), P], now=NOW + 1) == {P: 2, Q: 0}
        assert await engine.pools.drop([P, Q, R], now=NOW + 1) == {}
        assert await engine.pools.drop([], now=NOW) == {}

    async def test_a_dropped_pool_keeps_its_history_and_hands_out_nothing(self, engine: Engine) -> None:
        await stocked(engine, "abc", P)
        await draw(engine, "U1", P)

        assert await drop(engine, P) == 1
        assert await draw(engine, "U2", P) is None
        assert await engine.pools.stocks([P], now=NOW) == {}
        assert await held(engine, "U1", P, now=END - 1) == Holding(("a",), 0)
        assert await held(engine, "U1", P, now=END) is None

    async def test_a_draw_during_a_drop_is_counted_or_returns_nothing(self, engine: Engine) -> None:
        await stocked(engine, [str(number) for number in range(99)])

        first, count, second = await asyncio.gather(draws(engine, 20), drop(engine), draws(engine, 20, name="V"))

        assert len(first) + len(second) == count

    async def test_a_new_pool_skips_what_earlier_ones_handed_out(self, engine: Engine) -> None:
        for items, of in (("abcd", X), ("bxacdy", Y), ("yxzb", Z)):
            await fill(engine, items, of)
        await assign(engine, {P: X})
        assert await draws(engine, 3, P) == ["a", "b", "c"]
        await drop(engine, P)
        await assign(engine, {P: Y}, note=b"again")
        assert [await draw(engine, "0", P), await draw(engine, "1", P)] == ["x", "d"]

        assert await held(engine, "0", P) == Holding(("a", "x"), 1)
        assert await held(engine, "2", P) == Holding(("c",), 0)
        assert await drop(engine, P) == 2
        await assign(engine, {P: Z})
        assert [await draw(engine, "0", P, most=2) for _ in range(3)] == ["y", "z", None]
        assert await held(engine, "0", P) == Holding(("a", "x", "y", "z"), 2)

    async def test_the_history_of_each_pool_lasts_until_its_own_expiry(self, engine: Engine) -> None:
        for life, items, of in ((20, "a", X), (10, "b", Y), (30, "c", Z)):
            await fill(engine, items, of, expires_at=NOW + life)
            await assign(engine, {P: of}, expires_at=NOW + life)
            await draw(engine, "U1", P)
            await drop(engine, P)

        for now, items in ((9, "abc"), (10, "ac"), (19, "ac"), (20, "c"), (29, "c")):
            assert await held(engine, "U1", P, now=NOW + now) == Holding(tuple(items), 0)
        assert await held(engine, "U1", P, now=NOW + 30) is None

    async def test_a_pool_is_alive_until_just_before_its_expiry(self, engine: Engine) -> None:
        await stocked(engine, "abc", P, expires_at=END)
        await draw(engine, "U1", P)

        assert await draw(engine, "U2", P, now=END - 1) == "b"
        assert await held(engine, "U1", P, now=END - 1) == Holding(("a",), 1)
        assert await draw(engine, "U3", P, now=END) is None
        assert await held(engine, "U1", P, now=END) is None
        assert await drop(engine, P, now=END) is None

    async def test_an_assignment_sets_the_expiry_of_the_history(self, engine: Engine) -> None:
        await stocked(engine, "ab", P, expires_at=NOW + 10)
        await draw(engine, "U1", P)
        await fill(engine, "abc", X)
        await assign(engine, {P: X}, now=NOW + 9, expires_at=END)

        assert await held(engine, "U1", P, now=END - 1) == Holding(("a",), 1)
        assert await draws(engine, 9, P, now=END - 1) == ["b", "c"]

    async def test_a_pool_after_an_expired_one_has_no_history(self, engine: Engine) -> None:
        await fill(engine, "ab", X, expires_at=NOW + 10)
        await fill(engine, "cd", Y)
        await assign(engine, {P: X}, expires_at=NOW + 10)
        await draw(engine, "U1", P)
        await assign(engine, {P: Y}, now=NOW + 10)

        assert await held(engine, "U1", P, now=NOW + 10) is None
        assert await draws(engine, 9, P, now=NOW + 10) == ["c", "d"]
        assert await drop(engine, P, now=NOW + 10) == 2

    async def test_skipping_many_items_does_not_block_the_event_loop(self, engine: Engine) -> None:
        items = [str(number) for number in range(6000)]
        await fill(engine, items[:5000], X)
        await fill(engine, items, Y)
        await assign(engine, {P: X, Q: Y})
        for _ in range(5):
            await asyncio.gather(*(draw(engine, P.name, P, most=5000) for _ in range(1000)))

        async with LoopPasses() as passes:
            drawn = await draws(engine, 100, Q)

        assert sorted(drawn) == items[5000:5100]
        assert passes.count >= 5
        assert await engine.pools.drop([P, Q], now=NOW) == {P: 5000, Q: 100}

    async def test_cancelling_a_draw_that_skips_items_does_not_affect_others(self, engine: Engine) -> None:
        items = [str(number) for number in range(3000)]
        await fill(engine, items, X)
        await fill(engine, [*items, "new", "newer"], Y)
        await assign(engine, {P: X, Q: Y})
        await asyncio.gather(*(draw(engine, P.name, P, most=3000) for _ in items))
        tasks = [asyncio.create_task(draw(engine, f"U{number}", Q)) for number in range(3)]
        for _ in range(5):
            await asyncio.sleep(0)
        tasks[0].cancel()

        drawn = await asyncio.gather(*tasks, return_exceptions=True)

        assert {"new", "newer"} == {item for item in drawn if isinstance(item, str)}

    async def test_a_purge_reports_expired_pools_that_were_live(self, engine: Engine) -> None:
        await stocked(engine, "ab", P, expires_at=NOW + 3)
        await stocked(engine, "ab", Q, expires_at=NOW + 2)
        await stocked(engine, "ab", R, expires_at=NOW + 1)
        await fill(engine, "ab", X, expires_at=NOW + 1)
        for pool in (P, Q, R):
            await draw(engine, "U1", pool)
        await drop(engine, R)

        assert await engine.purge(now=NOW + 2) == [Expired(Q, NOW + 2)]
        assert await engine.purge(now=NOW + 9) == [Expired(P, NOW + 3)]
        assert await engine.purge(now=NOW + 9) == []

    async def test_a_pool_that_is_dropped_or_replaced_after_its_expiry_is_reported(self, engine: Engine) -> None:
        for pool, of, end in ((P, X, 1), (Q, Y, 2), (R, Z, 3)):
            await fill(engine, "ab", of, expires_at=NOW + end)
            await assign(engine, {pool: of}, expires_at=NOW + end)
        await drop(engine, P, now=NOW + 3)
        await assign(engine, {Q: source("other")}, now=NOW + 3)
        await fill(engine, "ab", Z, now=NOW + 3)

        assert [Expired(P, NOW + 1), Expired(Q, NOW + 2), Expired(R, NOW + 3)] == await engine.purge(now=NOW + 3)
        assert await engine.purge(now=NOW + 3) == []

    async def test_a_purge_does_not_change_any_result_about_pools(self, engine: Engine) -> None:
        for purged in (NOW, NOW + 10, NOW + 20, NOW + 30):
            for is_purged in (False, True):
                await engine.reset()
                for pool, of, end in ((P, X, 10), (Q, Y, 20), (R, Z, 30)):
                    await fill(engine, [str(number) for number in range(700)], of)
                    await assign(engine, {pool: of}, expires_at=NOW + end)
                    await draws(engine, 300, pool)
                await drop(engine, Q)
                await fill(engine, [str(number) for number in range(700)], Y, expires_at=NOW + 20)
                await assign(engine, {P: Y}, expires_at=NOW + 10)
                if is_purged:
                    await engine.purge(now=purged)
                    await engine.tidy()
                results = [
                    (
                        await engine.pools.held([P, Q, R], "7", now=now),
                        await engine.pools.stocks([P, Q, R], now=now),
                        [await draw(engine, f"{now}", pool, now=now) for pool in (P, Q, R)],
                    )
                    for now in (purged, purged + 9, purged + 10)
                ]
                if not is_purged:
                    expected = results

            assert expected == results

    async def test_a_reset_deletes_the_pools_of_its_own_namespace(self, engine: Engine, open: Open) -> None:
        async with open(namespace="other") as other:
            for each in (engine, other):
                await stocked(each, "ab", P, expires_at=NEVER)
                assert await draw(each, "U1", P) == "a"
            await fill(engine, "x", X)

            await engine.reset()

            assert await draw(engine, "U2", P) is None
            assert await held(engine, "U1", P) is None
            assert await held(other, "U1", P) == Holding(("a",), 1)
            await assign(engine, {P: X})
            assert await draw(engine, "U1", P) is None
            await engine.tidy()
            await drop(engine, P)
            await stocked(engine, "ab", P)
            assert await draws(engine, 3, P) == ["a", "b"]
            assert await draw(other, "U2", P) == "b"
            assert await drop(other, P) == 2

    async def test_pools_of_one_family_never_hand_out_the_same_item(self, engine: Engine) -> None:
        for pool in (P, Q, R):
            await stocked(engine, "abcd", pool)

        drawn = [await draw(engine, f"U{n}", pool) for n in range(2) for pool in (P, Q, R)]

        assert drawn == ["a", "b", "c", "d", None, None]
        assert await engine.pools.held([P, Q, R], "U0", now=NOW) == {
            pool: Holding((item,), 1) for pool, item in zip((P, Q, R), "abc", strict=True)
        }

    async def test_concurrent_draws_from_equal_lists_hand_out_each_item_once(self, engine: Engine) -> None:
        items = [str(number) for number in range(100)]
        pools = [key(name) for name in "abcd"]
        for pool in pools:
            await stocked(engine, items, pool)

        drawn = await asyncio.gather(*(draws(engine, 60, pool) for pool in pools))

        assert sorted(items) == sorted(item for some in drawn for item in some)

    async def test_an_item_stays_spent_after_its_pool_was_dropped(self, engine: Engine) -> None:
        await stocked(engine, "ab", P)
        await draw(engine, "U1", P)
        await drop(engine, P)

        await stocked(engine, "ab", Q)

        assert await draws(engine, 3, Q) == ["b"]

    async def test_an_item_stays_spent_after_its_pool_has_expired(self, engine: Engine) -> None:
        for is_purged, (first, later) in zip((False, True), ((P, Q), (R, key("s"))), strict=True):
            item, other = f"1 {is_purged}", f"2 {is_purged}"
            await stocked(engine, [item, other], first, expires_at=NOW + 10)
            await draw(engine, "U1", first)
            if is_purged:
                await engine.purge(now=NOW + 10)
                await engine.tidy()
            await fill(engine, [item, other], source(item), now=NOW + 10)
            await assign(engine, {later: source(item)}, now=NOW + 10)

            assert await draws(engine, 3, later, now=NOW + 10) == [other]
            assert await held(engine, "U1", first, now=NOW + 10) is None

    async def test_a_purge_of_everything_keeps_spent_items(self, engine: Engine) -> None:
        await stocked(engine, [str(number) for number in range(600)], P)
        await draws(engine, 600, P)
        await engine.purge(now=NEVER - 1)
        await engine.tidy()

        await stocked(engine, [*map(str, range(600)), "new"], Q)

        assert await draws(engine, 3, Q) == ["new"]

    async def test_a_list_that_begins_with_spent_items_goes_on_behind_them(self, engine: Engine) -> None:
        items = [str(number) for number in range(2_500)]
        await stocked(engine, items[:2_000], P)
        await asyncio.gather(*(draw(engine, "U1", P, most=2_000) for _ in range(2_000)))

        await fill(engine, items, X)
        await assign(engine, {Q: X})

        assert items[2000:] == await draws(engine, 600, Q)

    async def test_spent_items_inside_a_list_are_skipped(self, engine: Engine) -> None:
        items = [str(number) for number in range(1_000)]
        await stocked(engine, items[::2], P)
        await draws(engine, 500, P)

        await stocked(engine, items, Q)

        assert items[1::2] == await draws(engine, 1_000, Q)

    async def test_items_spent_after_a_list_was_filled_are_skipped(self, engine: Engine) -> None:
        await fill(engine, "abcd", X)
        await stocked(engine, "acx", P)
        await draws(engine, 3, P)
        await assign(engine, {Q: X})

        assert await draws(engine, 9, Q) == ["b", "d"]

    async def test_a_reset_forgets_the_spent_items_of_its_own_namespace(self, engine: Engine, open: Open) -> None:
        async with open(namespace="other") as other:
            for each in (engine, other):
                await stocked(each, "ab", P, expires_at=NEVER)
                await draws(each, 2, P)

            await engine.reset()

            for each, expected in ((engine, ["a", "b"]), (other, ["c"])):
                await stocked(each, "abc"[: 2 if each is engine else 3], Q)
                assert await draws(each, 9, Q) == expected
            await engine.tidy()
            await stocked(engine, "abc", R)
            assert await draws(engine, 9, R) == ["c"]

    async def test_spent_items_are_any_text(self, engine: Engine) -> None:
        items = ["", " ", "%", "|", "ünï", "🎁", "x" * 2_000, "a" * 64, "A" * 64]
        await stocked(engine, items, P)
        assert items == await draws(engine, 20, P)

        await stocked(engine, [*items, "b"], Q)

        assert await draws(engine, 20, Q) == ["b"]

    async def test_a_draw_that_skips_a_whole_list_lets_others_run(self, engine: Engine) -> None:
        items = [str(number) for number in range(6_000)]
        for pool in (P, Q):
            await stocked(engine, items, pool)
        for _ in range(6):
            await asyncio.gather(*(draw(engine, "U1", P, most=6_000) for _ in range(1_000)))

        async with LoopPasses() as passes:
            assert await draw(engine, "U2", Q) is None

        assert passes.count >= 12
        assert await draw(engine, "U3", Q, now=END - 1) is None
