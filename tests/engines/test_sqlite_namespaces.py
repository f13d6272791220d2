"""Namespaces of one process on one file: they share a connection and its commits, and nothing else."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from emulator.core.errors import EngineError
from emulator.storage.engine import Engine, Medium
from emulator.storage.opening import open_medium
from engines.database_files import opened
from engines.shorthand import cast, counts, read, write

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
    return int(engine.group_commit.commits)  # type: ignore[attr-defined]


async def test_writes_of_all_namespaces_share_a_commit(engines: list[Engine]) -> None:
    before = commits(engines[0])

    await asyncio.gather(*(cast(engine, "U1", "a") for engine in engines))

    assert commits(engines[0]) - before == 1


async def test_open_files_do_not_grow_with_namespaces(medium: Medium) -> None:
    async with AsyncExitStack() as stack:
        counted = []
        for number in range(50):
            await write(await stack.enter_async_context(medium.engine(f"n{number}")), b"1")
            counted.append(len(os.listdir("/proc/self/fd")))

    assert counted[0] == counted[-1]


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
