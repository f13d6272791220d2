"""Drops, forks and the watcher of idle namespaces, at the same time."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

import pytest

from emulator.config.settings import Limits, Settings
from emulator.engines.shapes import NEVER, CastRequest, Key
from emulator.errors import Conflict, EngineError, NotFound
from emulator.http.front import Front
from emulator.namespaces.registry import Registry
from emulator.observability.logs import _Origin
from emulator.opening import open_app
from support.process import wait_until
from support.service import CHANNEL, CLIENT_ID, Client, LiveServer, live_server

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
    service = (await namespaces.front(name))._service
    await service.engine.ballots.cast(POLL, CastRequest("U1", "1"), now=1, expires_at=NEVER)


async def votes(namespaces: Registry, name: str) -> int:
    service = (await namespaces.front(name))._service
    return len((await service.engine.ballots.tally(POLL, now=1)).counts)


async def outcomes(*works: Awaitable[object]) -> list[str]:
    """Return the name of each work's error, `done` without one."""
    ended = await asyncio.gather(*works, return_exceptions=True)
    return [type(each).__name__ if isinstance(each, BaseException) else "done" for each in ended]


@asynccontextmanager
async def paused(namespaces: Registry, name: str) -> AsyncIterator[Callable[[], None]]:
    """Let the namespace open only when the result is called. Waits in the block until its opening has begun."""
    opening, go_on, storage = asyncio.Event(), asyncio.Event(), namespaces._storage

    def slow(each: str) -> AbstractAsyncContextManager[Front]:
        return slowly(each) if each == name else storage.open(each)

    @asynccontextmanager
    async def slowly(each: str) -> AsyncIterator[Front]:
        opening.set()
        await go_on.wait()
        async with storage.open(each) as front:
            yield front

    namespaces._storage = storage._replace(open=slow)
    forking = asyncio.create_task(namespaces.create("b", "a"))
    await opening.wait()
    yield go_on.set
    go_on.set()
    await asyncio.gather(forking, return_exceptions=True)
    namespaces._storage = storage


async def test_a_namespace_is_not_dropped_while_it_is_copied(namespaces: Registry):
    async with paused(namespaces, "b") as go_on:
        with pytest.raises(Conflict, match="a is being copied"):
            await namespaces.drop("a")
        go_on()

    assert (1, 1) == (await votes(namespaces, "a"), await votes(namespaces, "b"))


async def test_a_copy_is_not_dropped_before_it_is_complete(namespaces: Registry):
    async with paused(namespaces, "b") as go_on:
        with pytest.raises(Conflict, match="b is being created"):
            await namespaces.drop("b")
        go_on()

    assert 1 == await votes(namespaces, "b")


async def test_a_namespace_that_is_being_dropped_is_not_copied(namespaces: Registry):
    dropping = asyncio.create_task(namespaces.drop("a"))
    await asyncio.sleep(0)  # the drop begins

    with pytest.raises((Conflict, NotFound)):
        await namespaces.create("b", "a")

    await dropping
    assert [] == (await namespaces.listing()).namespaces


@pytest.mark.parametrize("first", ["fork", "drop"])
async def test_of_a_fork_and_a_drop_at_once_one_is_refused(namespaces: Registry, first: str):
    works = [namespaces.create("b", "a"), namespaces.drop("a")]

    ended = await outcomes(*(works if first == "fork" else reversed(works)))

    assert ["Conflict", "done"] == sorted(ended)


async def test_of_two_forks_to_one_name_at_once_one_is_refused(namespaces: Registry):
    await vote(namespaces, "c")

    assert ["Conflict", "done"] == sorted(await outcomes(namespaces.create("b", "a"), namespaces.create("b", "c")))
    assert 1 == await votes(namespaces, "b")


async def test_a_request_to_a_copy_waits_until_the_copy_is_complete(namespaces: Registry):
    async with paused(namespaces, "b") as go_on:
        counting = asyncio.create_task(votes(namespaces, "b"))
        await asyncio.sleep(0)
        go_on()

        assert 1 == await counting


async def test_a_namespace_cannot_be_a_copy_of_itself(namespaces: Registry):
    with pytest.raises(Conflict):
        await namespaces.create("a", "a")

    assert 1 == await votes(namespaces, "a")


async def test_a_copy_that_storage_fails_to_begin_is_not_in_use(namespaces: Registry):
    async def fail() -> list[str]:
        raise EngineError("planted")

    storage = namespaces._storage
    namespaces._storage = storage._replace(names=fail)

    assert ["EngineError"] == await outcomes(namespaces.create("b", "a"))

    namespaces._storage = storage
    assert not await namespaces.exists("b")


async def test_a_copy_of_a_copy_that_fails_is_refused_and_neither_is_in_use(namespaces: Registry):
    opening, go_on, storage = asyncio.Event(), asyncio.Event(), namespaces._storage

    @asynccontextmanager
    async def failing(name: str) -> AsyncIterator[Front]:
        opening.set()
        await go_on.wait()
        raise EngineError("planted")
        yield

    namespaces._storage = storage._replace(open=failing)
    first = asyncio.create_task(outcomes(namespaces.create("b", "a")))
    await opening.wait()
    second = asyncio.create_task(outcomes(namespaces.create("c", "b")))
    await asyncio.sleep(0)
    namespaces._storage = storage
    go_on.set()

    assert (["EngineError"], ["NotFound"]) == (await first, await second)
    assert not await namespaces.exists("b")
    assert not await namespaces.exists("c")


def test_a_namespace_that_is_not_open_can_be_dropped_at_the_limit():
    with live_server(Settings(limits=Limits(namespaces=1))) as live, Client(base_url=live.url) as client:
        client.post("/_ns/a").raise_for_status()

        dropped = client.delete("/_ns/b")

        assert (200, {}) == (dropped.status_code, dropped.json())


def test_a_failing_drop_does_not_stop_the_drops_of_idle_namespaces():
    async def fail() -> None:
        raise ValueError("planted")

    with live_server(Settings(namespace_idle=0.01)) as live:
        live.run(prepare(live, "a", fail))
        wait_until(lambda: not listed(live))

        live.run(prepare(live, "b", None))
        wait_until(lambda: not listed(live))


def listed(live: LiveServer) -> list[str]:
    assert live.service.namespaces is not None
    return live.run(live.service.namespaces.listing()).namespaces


async def prepare(live: LiveServer, name: str, on_close: Callable[[], Awaitable[None]] | None) -> None:
    """Open a namespace; `on_close` is awaited when it closes."""
    namespaces = live.service.namespaces
    assert namespaces is not None
    await namespaces.front(name)
    if on_close is not None:
        namespaces._tenants[name].stack.push_async_callback(on_close)


def test_log_lines_about_a_fork_name_the_new_namespace(live: LiveServer, caplog: pytest.LogCaptureFixture):
    caplog.handler.addFilter(origin := _Origin())
    with Client(base_url=live.url) as client, caplog.at_level(logging.INFO, "emulator.audit"):
        client.post("/_ns/aaa").raise_for_status()
        client.post("/_ns/bbb?from=aaa").raise_for_status()
        client.delete("/_ns/aaa").raise_for_status()
        client.delete("/_ns/bbb").raise_for_status()
        client.post("/_emulator/reset").raise_for_status()

    caplog.handler.removeFilter(origin)
    labels = [record.__dict__.get("namespace") for record in caplog.records if record.name == "emulator.audit"]
    assert ["aaa", "bbb", "aaa", "bbb", ""] == labels
