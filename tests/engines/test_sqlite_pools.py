"""Pools and rosters in files: several engines and processes, crashes, large sizes, and older formats."""

from __future__ import annotations

import asyncio
import sqlite3
import subprocess
from pathlib import Path

import pytest

from emulator.engines.pools import Holding
from emulator.engines.shapes import NEVER
from emulator.errors import EngineError
from engines.child_process import AT_ONCE, POLL
from engines.database_files import TABLES_ADDED, go, make_older, opened, process
from engines.pool_shorthand import add_members, assign, draw, draws, drop, fill, held, listing, source, stocked
from engines.shorthand import NOW, LoopPasses, cast, counts, key

Handed = list[tuple[str, str]]
"""Users and items."""


def printed(running: subprocess.Popen[str], lines: int = 1 << 30) -> Handed:
    """Return what a drawing process prints, without a line that its death cut short."""
    assert running.stdout
    whole = [line for _, line in zip(range(lines), running.stdout, strict=False) if line.endswith("\n")]
    return [(user, item) for user, item in map(str.split, whole) if item != "None"]


TABLES = (*TABLES_ADDED[3], *TABLES_ADDED[4])


def count_rows(path: Path) -> dict[str, int]:
    with sqlite3.connect(path) as connection:
        return {table: connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0] for table in TABLES}


async def test_two_engines_on_one_file_draw_from_one_pool(path: Path) -> None:
    items = [str(number) for number in range(500)]
    async with opened(path) as one, opened(path) as two:
        await fill(one, items[:300])
        await fill(two, items[300:])
        await assign(one)

        drawn = await asyncio.gather(*(draw((one, two)[n % 2], f"U{n}") for n in range(600)))

        assert sorted(items) == sorted(item for item in drawn if item is not None)
        assert await held(one, "U5") == await held(two, "U5")
        await fill(two, ["7", "new"], source("next"))
        await assign(two, {key(): source("next")})
        assert await draw(one, "V") == "new"
        assert await drop(two) == 501
        assert await draw(one, "W") is None


async def test_two_engines_on_one_file_skip_the_same_items(path: Path) -> None:
    items = [str(number) for number in range(3000)]
    async with opened(path) as one, opened(path) as two:
        await fill(one, items)
        await assign(one)
        await asyncio.gather(*(draw(one, "U", most=len(items)) for _ in items))
        await fill(two, [*items, "a", "b", "c", "d"], source("next"))
        await assign(two, {key(): source("next")})

        drawn = await asyncio.gather(*(draw((one, two)[n % 2], f"V{n}") for n in range(10)))

    assert sorted(item for item in drawn if item) == ["a", "b", "c", "d"]


async def test_two_engines_on_one_file_share_the_spent_items(path: Path) -> None:
    items = [str(number) for number in range(400)]
    async with opened(path) as one, opened(path) as two:
        for engine, pool in ((one, key("p")), (two, key("q"))):
            await stocked(engine, items, pool)

        drawn = await asyncio.gather(*(draw((one, two)[n % 2], f"U{n}", key("pq"[n // 2 % 2])) for n in range(600)))

        assert sorted(items) == sorted(item for item in drawn if item is not None)
        await stocked(two, [*items, "new"], key("r"))
        assert await draw(one, "V", key("r")) == "new"


async def test_an_assigned_list_begins_behind_its_spent_items(path: Path) -> None:
    items = [str(number) for number in range(1_500)]
    async with opened(path) as engine:
        await stocked(engine, items, key("p"))
        await draws(engine, 1_400, key("p"))
        await stocked(engine, items, key("q"))

    with sqlite3.connect(path) as connection:
        assert connection.execute("SELECT position FROM pools WHERE name = 'q'").fetchone() == (1_400,)


async def test_concurrent_processes_hand_out_each_item_once(path: Path) -> None:
    items = [str(number) for number in range(1500)]
    async with opened(path) as engine:
        await stocked(engine, items, POLL, expires_at=NEVER)
        with process("draw", path, "x", 600) as one, process("draw", path, "y", 600) as two:
            go(one, two)
            mine: Handed = []
            for number in range(600):
                item = await draw(engine, f"z{number}", POLL, now=0)
                mine += [(f"z{number}", item)] if item else []
            handed = [*mine, *await asyncio.to_thread(printed, one), *await asyncio.to_thread(printed, two)]

        assert sorted(items) == sorted(item for _, item in handed)
        for user, item in handed:
            assert await held(engine, user, POLL) == Holding((item,), 1)
        assert await drop(engine, POLL) == len(items)


@pytest.mark.long
async def test_no_item_is_handed_out_twice_after_processes_are_killed(path: Path) -> None:
    items = [str(number) for number in range(4000)]
    async with opened(path) as engine:
        await stocked(engine, items, POLL, expires_at=NEVER)
    handed: Handed = []
    for number in range(10):
        with process("draw", path, f"{number}-", 50_000) as running:
            go(running)
            handed += printed(running, 1 + 17 * number)
            running.kill()
            handed += printed(running)

    async with opened(path) as engine:
        holdings = {
            user: holding.items
            for user in (f"{number}-{each}" for number in range(10) for each in range(4000 + AT_ONCE))
            if (holding := await held(engine, user, POLL))
        }
        assert len(handed) >= 10
        assert [(item,) for _, item in handed] == [holdings[user] for user, _ in handed]
        given = [item for some in holdings.values() for item in some]
        rest = await draws(engine, len(items), POLL)
        assert sorted(items) == sorted([*given, *rest])
        assert await drop(engine, POLL) == len(items)


@pytest.mark.parametrize("event", ["INSERT ON handed", "UPDATE ON pools"])
async def test_items_of_a_failed_commit_are_handed_out_later(path: Path, event: str) -> None:
    """The first trigger fails the statement, the second the commit."""
    async with opened(path) as engine:
        await stocked(engine, "abc")
        assert await draw(engine, "U0") == "a"
        failing = sqlite3.connect(path, isolation_level=None)
        failing.execute(f"CREATE TRIGGER full BEFORE {event} BEGIN SELECT RAISE(ABORT, 'disk full'); END")

        done = await asyncio.gather(*(draw(engine, f"U{n}") for n in range(1, 4)), return_exceptions=True)

        assert {type(each) for each in done} == {EngineError}
        failing.execute("DROP TRIGGER full")
        failing.close()
        assert await held(engine, "U1") is None
        assert await draws(engine, 9, name="V") == ["b", "c"]
        assert await drop(engine) == 3


async def test_a_file_of_format_2_is_migrated_and_keeps_its_data(path: Path) -> None:
    async with opened(path) as engine:
        await cast(engine, "U1", "a")
    make_older(path, 2)

    async with opened(path) as engine, opened(path) as other:
        assert await counts(engine) == [("a", 1)]
        await stocked(engine, "ab")
        await add_members(engine, ["x"])
        assert await draw(other) == "a"
        assert await listing(other, "x") == {"one"}


async def test_items_that_a_file_of_format_3_handed_out_stay_spent(path: Path) -> None:
    async with opened(path) as engine, opened(path, "other") as other:
        await stocked(engine, "abc", key("live"))
        await stocked(engine, "de", key("dropped"))
        await stocked(other, "f")
        drawn = [await draw(engine, "U1", key(name)) for name in ("live", "dropped")]
        await draw(other)
        await drop(engine, key("dropped"))
    make_older(path, 3)

    async with opened(path) as engine, opened(path, "other") as other:
        assert [await held(engine, "U1", key(name)) for name in ("live", "dropped")] == [
            Holding(("a",), 1),
            Holding(("d",), 0),
        ]
        await fill(engine, "fedcba")
        await assign(engine, {key("later"): source()})
        again = [await draw(engine, "U2", key("live"), most=2) for _ in range(2)]
        later = [await draw(engine, "U2", key("later"), most=9) for _ in range(5)]
        await stocked(other, "fab", key("more"))

        assert (drawn, again) == (["a", "d"], ["b", "c"])
        assert later == ["f", "e", None, None, None]
        assert await draw(other, "U2", key("more")) == "a"


async def test_large_lists_and_rosters_do_not_block_the_event_loop(path: Path) -> None:
    items, names = [f"code {n:06}" for n in range(200_000)], [f"{n * 7919 % 100_003}" for n in range(100_000)]
    async with opened(path) as engine:
        async with LoopPasses() as passes:
            for start in range(0, len(items), 10_000):
                await fill(engine, items[start : start + 10_000])
            for start in range(0, len(names), 1000):
                await add_members(engine, names[start : start + 1000])
            await assign(engine)

        assert passes.count >= 120
        assert items[:3000] == await draws(engine, 3000)
        assert [await listing(engine, name) for name in (*names[::9999], "absent")] == [{"one"}] * 11 + [set()]

        await fill(engine, items[2990:], source("next"))
        await assign(engine, {key(): source("next")})
        assert items[3000:3010] == await draws(engine, 10, name="V")
        assert await drop(engine) == 3010
        await engine.rosters.drop([key()], now=NOW)
        async with LoopPasses() as passes:
            await engine.tidy()
        assert passes.count >= 100

        assert await held(engine, "7") == Holding((items[7],), 0)
        await engine.purge(now=NEVER - 1)
        await engine.tidy()

    assert dict.fromkeys(TABLES, 0) | {"families": 1, "spent": 3010} == count_rows(path)


async def test_tidying_after_a_reset_leaves_no_rows_of_pools_and_rosters(path: Path) -> None:
    async with opened(path) as engine:
        await stocked(engine, "abc", key("live"))
        await stocked(engine, "abc", key("dropped"))
        await fill(engine, "abc")
        for pool in ("live", "dropped"):
            await draw(engine, "U1", key(pool))
            await add_members(engine, ["x"], key(pool))
        await drop(engine, key("dropped"))
        await engine.rosters.drop([key("dropped")], now=NOW)
        await engine.reset()
        await engine.tidy()

    assert dict.fromkeys(TABLES, 0) == count_rows(path)


async def test_a_roster_dropped_during_tidying_leaves_no_rows(path: Path) -> None:
    async with opened(path) as engine:
        for name in ("first", "second"):
            for start in range(0, 5000, 1000):
                await add_members(engine, [f"name {n}" for n in range(start, start + 1000)], key(name))
        await engine.rosters.drop([key("first")], now=NOW)
        tidying = asyncio.create_task(engine.tidy())
        while count_rows(path)["members"] > 8000:
            await engine.rosters.drop([], now=NOW)  # a write returns to the event loop
        await engine.rosters.drop([key("second")], now=NOW)
        await tidying

    assert dict.fromkeys(TABLES, 0) == count_rows(path)
