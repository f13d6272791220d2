"""The contract of assigning lists to pools."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

import pytest

from emulator.engines.base import NEVER, Key
from emulator.engines.engine import Engine
from emulator.engines.pools import Count, Holding, Stock
from engines.pool_shorthand import assign, draw, draws, drop, fill, held, source
from engines.shorthand import END, NOW, key

P, Q, R = key("p"), key("q"), key("r")
X, Y, Z = source("x"), source("y"), source("z")


class AssignmentsContract:
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
