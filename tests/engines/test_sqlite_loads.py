"""Loads into a SQLite file: what a crash leaves, and what goes on meanwhile."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Sequence
from functools import partial
from pathlib import Path

import pytest

from emulator.engines import open_engine
from emulator.engines.records import DocumentRecord, Record
from emulator.errors import EngineError
from engines.contract_dump import dumped, fill_all
from engines.shorthand import END, NOW, Open, cast, counts, key, read, write

RECORDS = [DocumentRecord(key(f"{number:03}"), END, b"new") for number in range(500)]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "data.db"


@pytest.fixture
def open(file: Path) -> Open:
    return partial(open_engine, f"sqlite://{file}")


class Halfway:
    """Records of which the second page comes when `proceed` is set."""

    def __init__(self) -> None:
        self.is_halfway, self.proceed = asyncio.Event(), asyncio.Event()

    async def pages(self) -> AsyncIterator[Sequence[Record]]:
        yield RECORDS[:250]
        self.is_halfway.set()
        await self.proceed.wait()
        yield RECORDS[250:]


async def test_an_interrupted_load_shows_nothing_and_an_opening_alone_removes_it(open: Open, file: Path):
    halfway = Halfway()
    async with open(namespace="main") as engine:
        await fill_all(engine)
        before = await dumped(engine)
        loading = asyncio.create_task(engine.load(halfway.pages(), replace=True))
        await halfway.is_halfway.wait()

        async with open(namespace="main", is_alone=True) as after_the_crash:
            assert before == await dumped(after_the_crash)
            await after_the_crash.tidy()
            with sqlite3.connect(file) as database:
                [(left,)] = database.execute("SELECT count(*) FROM documents WHERE value = ?", (b"new",)).fetchall()
            assert 0 == left

        halfway.proceed.set()
        with pytest.raises(EngineError, match="another process opened or loaded the same namespace"):
            await loading
        assert before == await dumped(engine)


async def test_a_load_that_starts_later_wins(open: Open):
    halfway = Halfway()
    async with open(namespace="main") as engine:
        loading = asyncio.create_task(engine.load(halfway.pages(), replace=True))
        await halfway.is_halfway.wait()

        async def other() -> AsyncIterator[Sequence[Record]]:
            yield [DocumentRecord(key("other"), END, b"1")]

        await engine.load(other(), replace=True)
        halfway.proceed.set()
        with pytest.raises(EngineError):
            await loading

        assert b"1" == await read(engine, key("other"))


async def test_casts_in_other_and_in_the_same_namespace_go_on_during_a_load(open: Open):
    halfway = Halfway()
    async with open(namespace="main") as engine, open(namespace="other") as other:
        loading = asyncio.create_task(engine.load(halfway.pages(), replace=True))
        await halfway.is_halfway.wait()

        await cast(other, "U1", "a")
        await cast(engine, "U1", "a")
        assert ([("a", 1)], [("a", 1)]) == (await counts(engine), await counts(other))
        halfway.proceed.set()
        await loading

        assert ([], [("a", 1)]) == (await counts(engine), await counts(other))
        assert RECORDS == await dumped(engine)


async def test_a_dump_shows_one_moment_while_writing_goes_on(open: Open):
    async with open(namespace="main") as engine:
        await engine.load(_pages(RECORDS), replace=True)
        found: list[Record] = []

        async for page in engine.dump(now=NOW):
            found += page
            await write(engine, b"later", key(f"later {len(found)}"))
            await write(engine, b"later", RECORDS[-1].key)

        assert RECORDS == found


async def _pages(records: Sequence[Record]) -> AsyncIterator[Sequence[Record]]:
    yield records
