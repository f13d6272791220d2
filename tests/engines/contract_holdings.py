"""The contract of handed-out items: who has them, how long the history lasts, and the effect of a drop."""

from __future__ import annotations

import asyncio

from emulator.core.keys import NEVER, Expired
from emulator.storage.engine import Engine
from engines.pool_shorthand import assign, draw, draws, drop, fill, source, stocked
from engines.shorthand import NOW, Open, key, purged

P, Q, R = key("p"), key("q"), key("r")
X, Y, Z = source("x"), source("y"), source("z")


class HoldingsContract:
    async def test_a_draw_during_a_drop_is_counted_or_returns_nothing(self, engine: Engine) -> None:
        await stocked(engine, [str(number) for number in range(99)])

        first, count, second = await asyncio.gather(draws(engine, 20), drop(engine), draws(engine, 20, name="V"))

        assert len(first) + len(second) == count

    async def test_cancelling_a_draw_that_skips_items_does_not_affect_others(self, engine: Engine) -> None:
        items = [str(number) for number in range(1500)]
        await fill(engine, items, X)
        await fill(engine, [*items, "new", "newer"], Y)
        await assign(engine, {P: X, Q: Y})
        await asyncio.gather(*(draw(engine, P.name, P, most=1500) for _ in items))
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

        assert await purged(engine, now=NOW + 2) == [Expired(Q, NOW + 2)]
        assert await purged(engine, now=NOW + 9) == [Expired(P, NOW + 3)]
        assert await purged(engine, now=NOW + 9) == []

    async def test_concurrent_draws_from_equal_lists_hand_out_each_item_once(self, engine: Engine) -> None:
        items = [str(number) for number in range(100)]
        pools = [key(name) for name in "abcd"]
        for pool in pools:
            await stocked(engine, items, pool)

        drawn = await asyncio.gather(*(draws(engine, 60, pool) for pool in pools))

        assert sorted(items) == sorted(item for some in drawn for item in some)

    async def test_a_purge_of_everything_keeps_spent_items(self, engine: Engine) -> None:
        await stocked(engine, [str(number) for number in range(600)], P)
        await draws(engine, 600, P)
        await purged(engine, now=NEVER - 1)
        await engine.tidy()

        await stocked(engine, [*map(str, range(600)), "new"], Q)

        assert await draws(engine, 3, Q) == ["new"]

    async def test_a_list_that_begins_with_spent_items_goes_on_behind_them(self, engine: Engine) -> None:
        items = [str(number) for number in range(1_300)]
        await stocked(engine, items[:1_000], P)
        await asyncio.gather(*(draw(engine, "U1", P, most=1_000) for _ in range(1_000)))

        await fill(engine, items, X)
        await assign(engine, {Q: X})

        assert items[1000:] == await draws(engine, 600, Q)

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
