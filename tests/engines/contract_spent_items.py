"""The contract of spent items: no family of pools hands out an item twice, however long ago the first time was."""

from __future__ import annotations

import asyncio

from emulator.engines.base import NEVER
from emulator.engines.engine import Engine
from emulator.engines.pools import Holding
from engines.pool_shorthand import assign, draw, draws, drop, fill, held, source, stocked
from engines.shorthand import END, NOW, LoopPasses, Open, key

P, Q, R = key("p"), key("q"), key("r")
X = source("x")


class SpentItemsContract:
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
