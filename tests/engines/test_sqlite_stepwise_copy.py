"""A dump of data in memory copies the database in short steps, and shows the moment at which it began."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator
from contextlib import aclosing

import pytest
from hypothesis import given, settings

from emulator.engines.engine import Engine
from emulator.engines.opening import open_engine
from emulator.engines.sqlite import dump
from emulator.engines.sqlite.dump import stepwise_copy
from emulator.errors import EngineError
from engines.contract_dump import dumped, fill_all, load
from engines.contract_property import SHARED
from engines.histories import HISTORIES, History, replay
from engines.shorthand import NOW, LoopPasses, cast, counts, key, write
from engines.test_sqlite import fail
from support.examples import examples


@pytest.fixture
async def engine(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Engine]:
    """An empty engine in memory that copies the smallest database in steps of one row."""
    monkeypatch.setattr(dump, "ONE_STEP", 0)
    monkeypatch.setattr(stepwise_copy, "_STEP", 1)
    async with open_engine("sqlite://", namespace="main") as engine:
        yield engine


def temporary(engine: Engine) -> list[tuple[str]]:
    connection: sqlite3.Connection = engine._group_commit.connection  # type: ignore[attr-defined]
    return connection.execute("SELECT name FROM sqlite_temp_schema").fetchall()


@settings(max_examples=examples(100), deadline=None, suppress_health_check=SHARED)
@given(HISTORIES, HISTORIES)
async def test_a_dump_shows_the_moment_at_which_it_began_whatever_is_written_meanwhile(
    engine: Engine, before: History, after: History
):
    await engine.reset()
    now = await replay(engine, before)
    expected = await dumped(engine, now=now)
    async with aclosing(engine.dump(now=now)) as pages:  # type: ignore[type-var]
        first = asyncio.ensure_future(anext(pages, ()))
        await asyncio.sleep(0)

        await replay(engine, after, now)
        await fail(engine)
        found = [*await first, *[record async for page in pages for record in page]]

    assert expected == found
    assert [] == temporary(engine)


async def test_a_reset_and_a_load_during_a_dump_are_not_in_it(engine: Engine):
    await fill_all(engine)
    expected = await dumped(engine)
    dumping = asyncio.create_task(dumped(engine))
    await asyncio.sleep(0)

    await engine.reset()
    await engine.tidy()
    await load(engine, expected[:1])

    assert expected == await dumping
    assert expected[:1] == await dumped(engine)


async def test_a_copy_of_another_namespace_during_a_dump_is_not_in_it(engine: Engine):
    await fill_all(engine)
    expected = await dumped(engine)
    dumping = asyncio.create_task(dumped(engine))
    await asyncio.sleep(0)

    async with open_engine("sqlite://", namespace="other") as other:
        await write(other, b"other")
        await engine.copy(other, now=NOW)

        assert expected == await dumping
        assert await dumped(other) == await dumped(engine)


async def test_two_dumps_at_once_show_two_moments(engine: Engine):
    await cast(engine, "U1", "a")
    first = asyncio.create_task(dumped(engine))
    await asyncio.sleep(0)
    await cast(engine, "U1", "b")
    expected = await dumped(engine)

    second = asyncio.create_task(dumped(engine))
    await asyncio.sleep(0)
    await cast(engine, "U1", "c")

    assert expected == await second
    assert "a" == (await first)[1].choice  # type: ignore[union-attr]
    assert [("c", 1)] == await counts(engine)


async def test_the_loop_runs_after_each_step_and_nothing_stays_after_a_cancelled_dump(engine: Engine):
    for number in range(20):
        await write(engine, b"1", key(f"{number}"))
    async with LoopPasses() as passes:
        dumping = asyncio.create_task(dumped(engine))
        await asyncio.sleep(0)
        assert temporary(engine)
        assert 20 == len(await dumping)
        assert passes.count > 20
    dumping = asyncio.create_task(dumped(engine))
    await asyncio.sleep(0)

    dumping.cancel()
    await asyncio.wait([dumping])

    assert [] == temporary(engine)


async def test_a_dump_ends_with_an_error_when_the_engine_closes(engine: Engine):
    await fill_all(engine)
    dumping = asyncio.create_task(dumped(engine))
    await asyncio.sleep(0)

    await engine.__aexit__()

    with pytest.raises(EngineError):
        await dumping
    await engine.__aenter__()
