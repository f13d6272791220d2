"""The contract on SQLite."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from emulator.core.errors import EngineError
from emulator.core.keys import Key
from emulator.storage.engine import Engine
from emulator.storage.opening import open_engine, open_medium
from emulator.storage.shapes import CastRequest, Terms
from emulator.storage.sqlite import SqliteMedium, group_commit
from emulator.storage.sqlite.connection import connect
from engines.contract import EngineContract
from engines.schedules import Disturbance
from engines.shorthand import END, EVERYWHERE, NOW, Open, all_of, cast, key


class TestFile(EngineContract):
    """Data in memory is in a file too, of the process alone."""

    @pytest.fixture
    def open(self, tmp_path: Path) -> Open:
        """All namespaces share a connection. A second engine of a namespace has one of its own, to read the file."""
        url = f"sqlite://{tmp_path}/data.db"
        medium = open_medium(url)
        assert isinstance(medium, SqliteMedium)

        def open(namespace: str) -> Engine:
            return (
                open_engine(url, namespace=namespace)
                if namespace in medium.group_commit.caches
                else medium.engine(namespace)
            )

        return open

    @pytest.fixture
    def disturbances(self, engine: Engine) -> Mapping[str, Disturbance]:
        copy_log = engine.group_commit.copy_log_now  # type: ignore[attr-defined]
        return {"failure": partial(fail, engine), "checkpoint": copy_log}


async def fail(engine: Engine) -> None:
    """Make the group fail that is open now, as a full disk would."""

    def work() -> None:
        group_commit.connection.execute("UPDATE numbers SET next = next")
        raise sqlite3.OperationalError("disk full")

    group_commit = engine.group_commit  # type: ignore[attr-defined]
    with suppress(EngineError):
        await group_commit.write(work)


async def work_of(engine: Any, operation: Callable[[], Awaitable[object]]) -> int:
    """Run an operation; return how many instructions of SQLite it took, on the connections that it opens too."""
    main, steps = engine.group_commit.connection, 0

    def step() -> int:
        nonlocal steps
        steps += 1
        return 0

    async def connected(*args: Any, **options: Any) -> sqlite3.Connection:
        connection = await connect(*args, **options)
        connection.set_progress_handler(step, 1)
        return connection

    main.set_progress_handler(step, 1)
    with patch.object(group_commit, "connect", connected):
        await operation()
    main.set_progress_handler(None, 1)
    return steps


@pytest.mark.parametrize("group", [EVERYWHERE, key()], ids=["all channels", "one channel"])
async def test_the_work_of_a_listing_does_not_grow_with_the_number_of_ballots(group: Key) -> None:
    async def listing(ballots: int) -> int:
        async with open_engine("sqlite://", namespace="main") as engine:
            await asyncio.gather(*(cast(engine, "U1", "3", key(f"{number}")) for number in range(ballots)))
            return await work_of(engine, lambda: engine.ballots.listing(group, now=NOW, limit=10))

    assert await listing(1_000) < 2 * await listing(100)


async def test_the_work_of_reading_entries_grows_with_their_number_only() -> None:
    async def reading(voters: int) -> int:
        async with open_engine("sqlite://", namespace="main") as engine:
            requests = [CastRequest(f"U{number}", "a", b"note") for number in range(voters)]
            await asyncio.gather(*(engine.ballots.cast(key(), each, now=NOW, expires_at=END) for each in requests))
            return await work_of(engine, lambda: all_of(engine.ballots.entries(key(), now=NOW)))

    assert await reading(2_000) < 6 * await reading(500)


async def test_a_definition_that_is_rolled_back_is_never_read() -> None:
    async with open_engine("sqlite://", namespace="main") as engine:
        await engine.ballots.define(key(), b"old", Terms(), now=NOW, expires_at=END)
        group_commit = engine.group_commit  # type: ignore[attr-defined]

        async def define_later() -> None:
            """Write in one group, and as soon as that is committed, define in another."""
            await cast(engine, "U1", "a")
            await engine.ballots.define(key(), b"new", Terms(), now=NOW, expires_at=END)

        async def fail_second_group() -> None:
            while group_commit.commits == commits or group_commit.group is None:  # noqa: ASYNC110 - it has no event
                await asyncio.sleep(0)
            await fail(engine)

        commits = group_commit.commits
        failure, found, _ = await asyncio.gather(
            define_later(), engine.ballots.definition(key(), now=NOW), fail_second_group(), return_exceptions=True
        )

        assert isinstance(failure, EngineError)
        assert b"old" == found == await engine.ballots.definition(key(), now=NOW)
