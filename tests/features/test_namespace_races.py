"""Drops, forks and the watcher of idle namespaces, at the same time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

import pytest

from emulator.core.errors import EngineError
from emulator.core.keys import NEVER, Key
from emulator.core.settings import Settings
from emulator.namespaces.registry import Registry
from emulator.namespaces.service_app import ServiceApp
from emulator.process.opening import open_app
from emulator.storage.shapes import CastRequest
from support.service import CHANNEL, CLIENT_ID

POLL = Key("poll", CLIENT_ID, "p", CHANNEL)


@pytest.fixture(params=["memory", "file"])
async def namespaces(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Registry]:
    """The namespaces of a service in memory, then of one on a file. The namespace `a` has a vote."""
    data = "sqlite://" if request.param == "memory" else f"sqlite://{tmp_path}/data.db"
    async with open_app(Settings(data=data)) as (_, service):
        assert service.namespaces is not None
        await vote(service.namespaces, "a")
        yield service.namespaces


async def vote(namespaces: Registry, name: str) -> None:
    service = await namespaces.open(name)
    await service.engine.ballots.cast(POLL, CastRequest("U1", "1"), now=1, expires_at=NEVER)


async def votes(namespaces: Registry, name: str) -> int:
    service = await namespaces.open(name)
    return len((await service.engine.ballots.tally(POLL, now=1)).counts)


async def outcomes(*works: Awaitable[object]) -> list[str]:
    """Return the name of each work's error, `done` without one."""
    ended = await asyncio.gather(*works, return_exceptions=True)
    return [type(each).__name__ if isinstance(each, BaseException) else "done" for each in ended]


@asynccontextmanager
async def paused(namespaces: Registry, name: str) -> AsyncIterator[Callable[[], None]]:
    """Let the namespace open only when the result is called. Waits in the block until its opening has begun."""
    opening, go_on, open_service = asyncio.Event(), asyncio.Event(), namespaces._open_service

    def slow(each: str) -> AbstractAsyncContextManager[ServiceApp]:
        return slowly(each) if each == name else open_service(each)

    @asynccontextmanager
    async def slowly(each: str) -> AsyncIterator[ServiceApp]:
        opening.set()
        await go_on.wait()
        async with open_service(each) as front:
            yield front

    namespaces._open_service = slow
    forking = asyncio.create_task(namespaces.create("b", "a"))
    await opening.wait()
    yield go_on.set
    go_on.set()
    await asyncio.gather(forking, return_exceptions=True)
    namespaces._open_service = open_service


async def test_neither_a_source_nor_its_copy_is_dropped_before_the_copy_is_complete(namespaces: Registry):
    async with paused(namespaces, "b") as go_on:
        assert ["Conflict"] * 2 == await outcomes(namespaces.drop("a"), namespaces.drop("b"))
        go_on()

    assert (1, 1) == (await votes(namespaces, "a"), await votes(namespaces, "b"))


@pytest.mark.parametrize(("first", "second"), [("fork", "drop"), ("drop", "fork"), ("fork", "other fork")])
async def test_of_a_fork_and_a_drop_or_another_fork_at_once_one_is_refused(namespaces: Registry, first, second):
    await vote(namespaces, "c")
    works = {
        "fork": lambda: namespaces.create("b", "a"),
        "drop": lambda: namespaces.drop("a"),
        "other fork": lambda: namespaces.create("b", "c"),
    }

    assert ["Conflict", "done"] == sorted(await outcomes(works[first](), works[second]()))


async def test_a_request_to_a_copy_waits_until_the_copy_is_complete(namespaces: Registry):
    async with paused(namespaces, "b") as go_on:
        counting = asyncio.create_task(votes(namespaces, "b"))
        await asyncio.sleep(0)
        go_on()

        assert 1 == await counting


async def test_a_copy_of_a_copy_that_fails_is_refused_and_neither_is_in_use(namespaces: Registry):
    opening, go_on, open_service = asyncio.Event(), asyncio.Event(), namespaces._open_service

    @asynccontextmanager
    async def failing(name: str) -> AsyncIterator[ServiceApp]:
        opening.set()
        await go_on.wait()
        raise EngineError("planted")
        yield

    namespaces._open_service = failing
    first = asyncio.create_task(outcomes(namespaces.create("b", "a")))
    await opening.wait()
    second = asyncio.create_task(outcomes(namespaces.create("c", "b")))
    await asyncio.sleep(0)
    namespaces._open_service = open_service
    go_on.set()

    assert (["EngineError"], ["NotFound"]) == (await first, await second)
    assert not await namespaces.exists("b")
    assert not await namespaces.exists("c")
