"""Namespaces of one process on one file: they share a connection and its commits, and nothing else."""

from __future__ import annotations

import asyncio
import os
import sqlite3
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from emulator.engines.engine import Engine, Medium
from emulator.engines.opening import open_medium
from emulator.engines.sqlite.files.verification import verify_file
from emulator.errors import EngineError
from engines.database_files import opened
from engines.shorthand import NOW, cast, choice_of, counts, entries, key, read, write

NAMESPACES = 48


@pytest.fixture
async def medium(path: Path) -> AsyncIterator[Medium]:
    async with open_medium(f"sqlite://{path}") as medium:
        yield medium


@pytest.fixture
async def engines(medium: Medium) -> AsyncIterator[list[Engine]]:
    async with AsyncExitStack() as stack:
        yield [await stack.enter_async_context(medium.engine(f"n{number}")) for number in range(NAMESPACES)]


def commits(engine: Engine) -> int:
    return int(engine._group_commit.commits)  # type: ignore[attr-defined]


async def test_writes_of_all_namespaces_share_a_commit(engines: list[Engine]) -> None:
    before = commits(engines[0])

    await asyncio.gather(*(cast(engine, "U1", "a") for engine in engines))

    assert commits(engines[0]) - before == 1


async def test_writers_in_many_namespaces_advance_equally(engines: list[Engine]) -> None:
    async def vote(engine: Engine) -> None:
        for number in range(20):
            await cast(engine, f"U{number}", "a")

    before = commits(engines[0])
    await asyncio.gather(*(vote(engine) for engine in engines))

    assert commits(engines[0]) - before == 20
    assert [await counts(engine) for engine in engines] == [[("a", 20)]] * NAMESPACES


async def test_a_commit_writes_namespaces_in_the_order_of_their_first_writes(engines: list[Engine]) -> None:
    statements: list[str] = []
    names = [f"voter-{number}" for number in range(NAMESPACES)]
    engines[0]._group_commit.connection.set_trace_callback(statements.append)  # type: ignore[attr-defined]

    await asyncio.gather(*(cast(engine, name, "a") for engine, name in zip(engines, names, strict=True)))

    written = [each.split("'")[1] for each in statements if each.lstrip().startswith("INSERT INTO marks")]
    assert written == names


async def test_open_files_do_not_grow_with_namespaces(medium: Medium) -> None:
    async with AsyncExitStack() as stack:
        counted = []
        for number in range(50):
            await write(await stack.enter_async_context(medium.engine(f"n{number}")), b"1")
            counted.append(len(os.listdir("/proc/self/fd")))

    assert counted[0] == counted[-1]


async def test_a_failed_commit_undoes_the_writes_of_all_namespaces(engines: list[Engine]) -> None:
    one, two = engines[:2]
    await cast(one, "U1", "a")
    await cast(two, "U1", "a")
    casting, failing = await asyncio.gather(cast(two, "U1", "b"), fail(one), return_exceptions=True)

    assert [EngineError, EngineError] == [type(casting), type(failing)]
    assert await choice_of(two, "U1") == "a"
    assert [entry.choice for entry in await entries(two)] == ["a"]


async def fail(engine: Engine) -> None:
    def work() -> None:
        group_commit.connection.execute("UPDATE numbers SET next = next")
        raise sqlite3.OperationalError("disk full")

    group_commit = engine._group_commit  # type: ignore[attr-defined]
    await group_commit.write(work)


async def test_a_namespace_can_be_dropped_while_others_write(medium: Medium, engines: list[Engine]) -> None:
    async def vote(engine: Engine) -> None:
        for number in range(30):
            await cast(engine, f"U{number}", "a")

    async def come_and_go() -> None:
        for number in range(10):
            async with medium.engine("short") as short:
                assert await read(short) is None
                await write(short, b"%d" % number)
                await short.drop()

    await asyncio.gather(come_and_go(), *(vote(engine) for engine in engines[:8]))

    assert [await counts(engine) for engine in engines[:8]] == [[("a", 30)]] * 8


async def test_a_namespace_cannot_be_open_twice_on_one_medium(medium: Medium) -> None:
    async with medium.engine("one"):
        with pytest.raises(EngineError, match="the namespace 'one' is open already"):
            async with medium.engine("one"):
                pass
    async with medium.engine("one") as again:
        assert await read(again) is None


async def test_all_namespaces_of_a_file_are_listed_open_or_not(medium: Medium, path: Path) -> None:
    async with opened(path, "b"), opened(path, "a"):
        pass
    async with medium.engine("c") as engine:
        await engine.set_aside()

        assert await medium.namespaces() == ["a", "b", "c"]
        await engine.drop()
    assert await medium.namespaces() == ["a", "b"]


async def test_a_fork_on_one_connection_is_atomic_while_others_write(engines: list[Engine]) -> None:
    source, copy = engines[:2]

    async def write_pairs() -> None:
        pair = [key("left"), key("right")]
        for number in range(60):
            both = {each: b"%d" % number for each in pair}
            await source.documents.update(pair, lambda _, both=both: both, now=NOW, expires_at=NOW + 1)

    async def fork() -> None:
        for _ in range(5):
            await copy.copy(source, now=NOW)
            assert await read(copy, key("left")) == await read(copy, key("right"))

    await asyncio.gather(write_pairs(), fork())


async def test_one_namespace_tidies_nothing_that_another_has_yet_to_write(path: Path, medium: Medium) -> None:
    async with medium.engine("a") as a, medium.engine("b") as b:
        await asyncio.gather(cast(b, "U1", "x"), b.ballots.drop(key(), now=NOW), a.tidy())
        await a.tidy()

    assert [] == verify_file(str(path)).findings
