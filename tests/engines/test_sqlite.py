"""The contract on SQLite, in memory and in a file."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest

from emulator.engines.engine import Engine
from emulator.engines.opening import open_engine, open_medium
from emulator.engines.shapes import Key, Terms
from emulator.engines.sqlite import SqliteEngine, documents
from emulator.errors import EngineError
from engines.contract import EngineContract
from engines.schedules import Disturbance
from engines.shorthand import END, EVERYWHERE, NOW, Open, cast, key, write


class TestMemory(EngineContract):
    @pytest.fixture
    def open(self) -> Open:
        return partial(open_engine, "sqlite://")

    @pytest.fixture
    def disturbances(self, engine: Engine) -> Mapping[str, Disturbance]:
        return {"failure": partial(fail, engine)}


@pytest.mark.slow
class TestFile(EngineContract):
    @pytest.fixture
    def open(self, tmp_path: Path) -> Open:
        """All namespaces share a connection. A second engine of a namespace acts as another process."""
        url = f"sqlite://{tmp_path}/data.db"
        medium = open_medium(url)
        first: dict[str, SqliteEngine] = {}

        def open(namespace: str) -> Engine:
            if namespace in first and first[namespace].is_open:
                return open_engine(url, namespace=namespace)
            engine = medium.engine(namespace)
            assert isinstance(engine, SqliteEngine)
            first[namespace] = engine
            return engine

        return open

    @pytest.fixture
    async def disturbances(self, engine: Engine, open: Open) -> AsyncIterator[Mapping[str, Disturbance]]:
        async with open(namespace="main") as second:
            yield {
                "failure": partial(fail, engine),
                "checkpoint": engine._database.checkpoints.copy_log_now,  # type: ignore[attr-defined]
                "another connection": lambda: write(second, b"1", key("of another connection")),
            }


async def fail(engine: Engine) -> None:
    """Make the group fail that is open now, as a full disk would."""

    def work() -> None:
        group_commit.connection.execute("UPDATE numbers SET next = next")
        raise sqlite3.OperationalError("disk full")

    group_commit = engine._group_commit  # type: ignore[attr-defined]
    with suppress(EngineError):
        await group_commit.write(work)


@pytest.mark.parametrize("group", [EVERYWHERE, key()], ids=["all channels", "one channel"])
async def test_the_work_of_a_listing_does_not_grow_with_the_number_of_ballots(group: Key) -> None:
    async with open_engine("sqlite://", namespace="main") as engine:
        steps = [await steps_of_listing(engine, group, ballots) for ballots in (300, 3000)]

    assert steps[1] < 2 * steps[0]


async def steps_of_listing(engine: Engine, group: Key, ballots: int) -> int:
    """The steps of SQLite's virtual machine for a page of 10, once there are this many ballots."""
    await asyncio.gather(*(cast(engine, "U1", "3", key(f"{number}")) for number in range(ballots)))
    steps = 0

    def count() -> int:
        nonlocal steps
        steps += 1
        return 0

    connection = engine._group_commit.connection  # type: ignore[attr-defined]
    connection.set_progress_handler(count, 1)
    try:
        assert 10 == len(await engine.ballots.listing(group, now=NOW, limit=10))
    finally:
        connection.set_progress_handler(None, 0)
    return steps


async def test_a_document_that_left_the_cache_is_found_before_it_is_written(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(documents, "_MAX_PEEKED", 2)
    first, *others = [key(f"{number}") for number in range(4)]
    async with open_engine("sqlite://", namespace="main") as engine:
        peeked = await asyncio.gather(
            engine.documents.keep({first: b"kept"}, replace=False),
            *(engine.documents.peek(each, now=NOW) for each in (*others, first)),
        )

        assert [None, None, None, b"kept"] == peeked[1:]
        assert b"kept" == await engine.documents.peek(first, now=NOW)


async def test_a_definition_that_is_rolled_back_is_never_read() -> None:
    async with open_engine("sqlite://", namespace="main") as engine:
        await engine.ballots.define(key(), b"old", Terms(), now=NOW, expires_at=END)
        group_commit = engine._group_commit  # type: ignore[attr-defined]

        async def define_later() -> None:
            """Write in one group, and as soon as that is committed, define in another."""
            await cast(engine, "U1", "a")
            await engine.ballots.define(key(), b"new", Terms(), now=NOW, expires_at=END)

        async def fail_second_group() -> None:
            while group_commit.commits == commits or not group_commit.is_writing:  # noqa: ASYNC110 - it has no event
                await asyncio.sleep(0)
            await fail(engine)

        commits = group_commit.commits
        failure, found, _ = await asyncio.gather(
            define_later(), engine.ballots.definition(key(), now=NOW), fail_second_group(), return_exceptions=True
        )

        assert isinstance(failure, EngineError)
        assert b"old" == found == await engine.ballots.definition(key(), now=NOW)


def test_no_test_of_the_contract_hides_another() -> None:
    names = [name for part in EngineContract.__bases__ for name in vars(part) if name.startswith("test_")]

    assert len(names) == len(set(names))
