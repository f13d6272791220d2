"""The contract of namespaces, resets, and opening and closing."""

from __future__ import annotations

import asyncio

import pytest

from emulator.core.errors import EngineError
from emulator.core.keys import NEVER
from emulator.storage.engine import Engine
from emulator.storage.shapes import Cast, Terms
from engines.pool_shorthand import add_members, assign, draw, drop, held, listing, source, stocked
from engines.pool_shorthand import fill as fill_list
from engines.shorthand import (
    END,
    EVERYWHERE,
    NOW,
    ODD,
    Open,
    append,
    cast,
    choice_of,
    counts,
    entries,
    items,
    key,
    latest,
    read,
    write,
)


async def fill(engine: Engine, value: str) -> None:
    await write(engine, value.encode())
    await write(engine, value.encode(), key(user=value))
    await engine.ballots.define(key(), value.encode(), Terms(), now=NOW, expires_at=END)
    await cast(engine, "U1", value)
    await append(engine, value.encode())
    await add_members(engine, [value], key("roster"))
    await stocked(engine, [value, "spare"])
    assert await draw(engine, "U1") == value  # it was not handed out in this namespace since its reset


async def everything(engine: Engine) -> list[object]:
    return [
        await read(engine),
        await engine.documents.users(key(), after="", limit=9, now=NOW),
        await engine.ballots.definition(key(), now=NOW),
        await counts(engine),
        await choice_of(engine, "U1"),
        [entry[:3] for entry in await entries(engine)],
        await items(engine),
        await latest(engine),
        await counts(engine, EVERYWHERE),
        [entry[:3] for entry in await entries(engine, EVERYWHERE)],
        await items(engine, EVERYWHERE),
        await listing(engine, "a", "b"),
        await held(engine, "U1"),
    ]


NOTHING = [None, [], None, [], None, [], [], 0, [], [], [], set(), None]


class NamespacesContract:
    async def test_namespaces_never_see_each_other(self, engine: Engine, open: Open) -> None:
        async with open(namespace="other") as other:
            await fill(engine, "a")
            mine = await everything(engine)

            assert await everything(other) == NOTHING

            await fill(other, "b")

            assert mine == await everything(engine)
            assert await other.documents.drop([key(user="a")], now=NOW) == 0
            await other.ballots.drop(EVERYWHERE, now=NOW)
            assert mine == await everything(engine)

    async def test_unusual_namespaces_stay_distinct(self, open: Open) -> None:
        for odd in ODD:
            async with open(namespace=odd) as engine:
                assert await everything(engine) == NOTHING
                await fill(engine, "a")

    async def test_a_reset_deletes_everything_in_its_own_namespace(self, engine: Engine, open: Open) -> None:
        async with open(namespace="other") as other:
            await fill(engine, "a")
            await fill(other, "b")
            kept = await everything(other)

            await engine.reset()

            for _ in range(2):
                assert await everything(engine) == NOTHING
                assert await draw(engine, "U2") is None
                assert kept == await everything(other)
                await engine.tidy()
            assert await draw(other, "U2") == "spare"

    async def test_a_namespace_is_usable_after_a_reset(self, engine: Engine) -> None:
        await fill(engine, "a")
        fresh = await everything(engine)
        for _ in range(3):
            await engine.reset()
            await fill(engine, "a")

            assert fresh == await everything(engine)

    async def test_a_dropped_namespace_is_empty_when_it_is_opened_again(self, engine: Engine, open: Open) -> None:
        await fill(engine, "a")
        kept = await everything(engine)
        for _ in range(2):
            async with open(namespace="other") as other:
                assert await everything(other) == NOTHING
                await fill(other, "b")
                await other.drop()

        await engine.tidy()

        assert kept == await everything(engine)

    async def test_a_reset_is_atomic_during_other_operations(self, engine: Engine) -> None:
        await asyncio.gather(
            *(cast(engine, f"U{number}", "a") for number in range(20)),
            engine.reset(),
            *(cast(engine, f"V{number}", "b") for number in range(20)),
        )

        tallied = dict(await counts(engine))
        assert sum(tallied.values()) == len(await entries(engine))
        assert (tallied.get("a", 0) <= 20, tallied.get("b", 0) <= 20) == (True, True)

    async def test_a_cancelled_operation_does_not_affect_others(self, engine: Engine) -> None:
        casts = [asyncio.create_task(cast(engine, f"U{number}", "a")) for number in range(10)]
        await asyncio.sleep(0)
        casts[3].cancel()

        done = await asyncio.gather(*casts, return_exceptions=True)

        assert [number for number in range(10) if number != 3] == [
            number for number, each in enumerate(done) if isinstance(each, Cast)
        ]
        assert len(await entries(engine)) == sum(count for _, count in await counts(engine))
        assert {f"U{number}" for number in range(10) if number != 3} <= {e.voter for e in await entries(engine)}

    async def test_an_invalid_text_does_not_affect_other_operations(self, engine: Engine) -> None:
        """A lone surrogate cannot be encoded."""
        await stocked(engine, "abc")
        odd = key("\ud800")
        invalid = (
            *(cast(engine, "U2", "\ud800"), cast(engine, "\ud800", "a"), write(engine, b"1", odd)),
            *(append(engine, b"1", odd), draw(engine, "\ud800"), draw(engine, "U1", odd)),
            *(fill_list(engine, ["a"], source("\ud800")), assign(engine, {key("q"): source("\ud800")})),
            *(add_members(engine, ["y", "\ud800"]), add_members(engine, ["y"], odd), listing(engine, "\ud800")),
        )

        done = await asyncio.gather(
            *(cast(engine, "U1", "a"), draw(engine, "U1"), add_members(engine, ["x"])),
            *invalid,
            *(cast(engine, "U3", "a"), draw(engine, "U2"), add_members(engine, ["z"])),
            return_exceptions=True,
        )

        assert [UnicodeEncodeError] * len(invalid) == [type(each) for each in done[3:-3]]
        assert [Cast, "a", None, Cast, "b", None] == [
            Cast if isinstance(each, Cast) else each for each in (*done[:3], *done[-3:])
        ]
        assert await counts(engine) == [("a", 2)]
        assert [{"one"}, set(), {"one"}] == [await listing(engine, name) for name in "xyz"]
        assert await drop(engine) == 2

    async def test_operations_on_one_channel_refuse_all_channels(self, engine: Engine) -> None:
        for operation in (
            write(engine, b"1", EVERYWHERE),
            append(engine, b"1", EVERYWHERE),
            cast(engine, "U1", "a", EVERYWHERE),
            engine.ballots.define(EVERYWHERE, b"", Terms(), now=NOW, expires_at=NEVER),
            engine.ballots.definition(EVERYWHERE, now=NOW),
            add_members(engine, ["x"], EVERYWHERE),
            listing(engine, "x", beside=EVERYWHERE),
            engine.rosters.drop([EVERYWHERE], now=NOW),
            fill_list(engine, ["a"], EVERYWHERE),
            assign(engine, {EVERYWHERE: source("x")}),
            assign(engine, {key(): EVERYWHERE}),
            draw(engine, "U1", EVERYWHERE),
            held(engine, "U1", EVERYWHERE),
            drop(engine, EVERYWHERE),
            engine.pools.stocks([EVERYWHERE], now=NOW),
        ):
            with pytest.raises(ValueError, match="channel"):
                await operation

    async def test_a_closed_engine_fails_every_operation(self, open: Open) -> None:
        engine = open(namespace="main")
        for _ in range(2):
            for operation in (engine.check, engine.reset, lambda: cast(engine, "U1", "a"), lambda: everything(engine)):
                with pytest.raises(EngineError):
                    await operation()
            async with engine:
                await engine.check()

    async def test_closing_completes_pending_operations(self, open: Open) -> None:
        async with open(namespace="main") as engine:
            casts = [asyncio.create_task(cast(engine, f"U{number}", "a")) for number in range(10)]
            await asyncio.sleep(0)

        done = await asyncio.gather(*casts)

        assert [each.refused for each in done] == [None] * 10
