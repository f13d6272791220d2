"""Pools and rosters on files: several engines and processes on one, sudden death, large ones, and older files."""

from __future__ import annotations

import asyncio
import sqlite3
import subprocess
from pathlib import Path

import pytest

from emulator.engines.base import NEVER
from emulator.engines.pools import Holding
from emulator.errors import EngineError
from engines.another_process import AT_ONCE, POLL
from engines.database_files import BROUGHT, go, make_older, opened, process
from engines.pool_shorthand import add_members, assign, draw, draws, drop, fill, held, listing, source, stocked
from engines.shorthand import NOW, cast, counts, key

Handed = list[tuple[str, str]]
"""Holders, and what each says it was handed."""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "data.db"


def said(running: subprocess.Popen[str], lines: int = 1 << 30) -> Handed:
    """What a drawing process prints; a line that its death cut short was not said."""
    assert running.stdout
    whole = [line for _, line in zip(range(lines), running.stdout, strict=False) if line.endswith("\n")]
    return [(user, item) for user, item in map(str.split, whole) if item != "None"]


def rows_left(path: Path) -> dict[str, int]:
    with sqlite3.connect(path) as connection:
        return {table: connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0] for table in BROUGHT[3]}


async def count_turns(turns: list[int]) -> None:
    while True:
        turns[0] += 1
        await asyncio.sleep(0)


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


async def test_two_engines_on_one_file_pass_over_the_same_list(path: Path) -> None:
    items = [str(number) for number in range(3000)]
    async with opened(path) as one, opened(path) as two:
        await fill(one, items)
        await assign(one)
        await asyncio.gather(*(draw(one, "U", most=len(items)) for _ in items))
        await fill(two, [*items, "a", "b", "c", "d"], source("next"))
        await assign(two, {key(): source("next")})

        drawn = await asyncio.gather(*(draw((one, two)[n % 2], f"V{n}") for n in range(10)))

    assert sorted(item for item in drawn if item) == ["a", "b", "c", "d"]


async def test_processes_that_draw_at_once_hand_out_each_item_once(path: Path) -> None:
    items = [str(number) for number in range(1500)]
    async with opened(path) as engine:
        await stocked(engine, items, POLL, expires_at=NEVER)
        with process("draw", path, "x", 600) as one, process("draw", path, "y", 600) as two:
            go(one, two)
            mine: Handed = []
            for number in range(600):
                item = await draw(engine, f"z{number}", POLL, now=0)
                mine += [(f"z{number}", item)] if item else []
            handed = [*mine, *await asyncio.to_thread(said, one), *await asyncio.to_thread(said, two)]

        assert sorted(items) == sorted(item for _, item in handed)
        for user, item in handed:
            assert await held(engine, user, POLL) == Holding((item,), 1)
        assert await drop(engine, POLL) == len(items)


async def test_what_a_killed_process_said_it_handed_out_is_remembered_and_nothing_is_handed_out_twice(
    path: Path,
) -> None:
    items = [str(number) for number in range(4000)]
    async with opened(path) as engine:
        await stocked(engine, items, POLL, expires_at=NEVER)
    handed: Handed = []
    for number in range(10):
        with process("draw", path, f"{number}-", 50_000) as running:
            go(running)
            handed += said(running, 1 + 17 * number)
            running.kill()
            handed += said(running)

    async with opened(path) as engine:
        remembered = {
            user: holding.items
            for user in (f"{number}-{each}" for number in range(10) for each in range(4000 + AT_ONCE))
            if (holding := await held(engine, user, POLL))
        }
        assert len(handed) >= 10
        assert [(item,) for _, item in handed] == [remembered[user] for user, _ in handed]
        given = [item for some in remembered.values() for item in some]
        rest = await draws(engine, len(items), POLL)
        assert sorted(items) == sorted([*given, *rest])
        assert await drop(engine, POLL) == len(items)


@pytest.mark.parametrize("event", ["INSERT ON handed", "UPDATE ON pools"])
async def test_what_a_failed_turn_would_have_handed_out_is_handed_out_later(path: Path, event: str) -> None:
    """The one fails at once, the other at the commit."""
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


async def test_a_file_of_format_2_is_given_pools_and_rosters_and_keeps_its_data(path: Path) -> None:
    async with opened(path) as engine:
        await cast(engine, "U1", "a")
    make_older(path, 2)

    async with opened(path) as engine, opened(path) as other:
        assert await counts(engine) == [("a", 1)]
        await stocked(engine, "ab")
        await add_members(engine, ["x"])
        assert await draw(other) == "a"
        assert await listing(other, "x") == {"one"}


async def test_a_large_list_and_a_large_roster_are_filled_used_and_taken_away_while_others_have_their_turn(
    path: Path,
) -> None:
    items, names = [f"code {n:06}" for n in range(200_000)], [f"{n * 7919 % 100_003}" for n in range(100_000)]
    turns = [0]
    async with opened(path) as engine:
        counting = asyncio.create_task(count_turns(turns))
        for start in range(0, len(items), 10_000):
            await fill(engine, items[start : start + 10_000])
        for start in range(0, len(names), 1000):
            await add_members(engine, names[start : start + 1000])
        await assign(engine)

        assert turns[0] >= 120
        assert items[:3000] == await draws(engine, 3000)
        assert [await listing(engine, name) for name in (*names[::9999], "nobody")] == [{"one"}] * 11 + [set()]

        await fill(engine, items[2990:], source("next"))
        await assign(engine, {key(): source("next")})
        assert items[3000:3010] == await draws(engine, 10, name="V")
        assert await drop(engine) == 3010
        await engine.rosters.drop([key()], now=NOW)
        turns[0] = 0
        await engine.tidy()
        assert turns[0] >= 100
        counting.cancel()

        assert await held(engine, "7") == Holding((items[7],), 0)
        await engine.purge(now=NEVER - 1)
        await engine.tidy()

    assert dict.fromkeys(BROUGHT[3], 0) == rows_left(path)


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

    assert dict.fromkeys(BROUGHT[3], 0) == rows_left(path)


async def test_a_roster_that_is_dropped_while_others_are_being_taken_away_leaves_no_rows(path: Path) -> None:
    async with opened(path) as engine:
        for name in ("first", "second"):
            for start in range(0, 5000, 1000):
                await add_members(engine, [f"name {n}" for n in range(start, start + 1000)], key(name))
        await engine.rosters.drop([key("first")], now=NOW)
        tidying = asyncio.create_task(engine.tidy())
        while rows_left(path)["members"] > 8000:
            await engine.rosters.drop([], now=NOW)  # a write waits for its turn, so that the others have theirs
        await engine.rosters.drop([key("second")], now=NOW)
        await tidying

    assert dict.fromkeys(BROUGHT[3], 0) == rows_left(path)
