"""A Redis server that dies, hangs, forgets or is full: operations fail in time, and go on when it is well again."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import redis

from emulator.engines import open_engine
from emulator.engines.engine import Engine
from emulator.engines.redis import relay
from emulator.engines.redis.connection import TIMEOUT
from emulator.errors import EngineError
from engines.redis_server import RedisServer
from engines.severable_link import Wire
from engines.shorthand import NOW, Listener, cast, counts, key, read, write


@pytest.fixture
def own_server(tmp_path: Path) -> Iterator[RedisServer]:
    """A server that the test may stop."""
    with RedisServer(tmp_path) as server:
        yield server


async def eventually(engine: Engine) -> None:
    """Wait until it can be used again."""
    async with asyncio.timeout(5):
        while True:
            try:
                await engine.check()
            except EngineError:
                await asyncio.sleep(0.02)
            else:
                return


async def test_a_server_that_is_killed_fails_operations_and_one_that_is_back_is_used(own_server: RedisServer) -> None:
    async with (
        open_engine(own_server.url(), namespace="main") as engine,
        open_engine(own_server.url(), namespace="main") as second,
    ):
        there = Listener(second)
        await cast(engine, "U1", "a")
        own_server.kill()

        began = time.monotonic()
        failed = await asyncio.gather(
            cast(engine, "U1", "a"), write(engine, b"1"), engine.check(), engine.purge(now=NOW), return_exceptions=True
        )
        with pytest.raises(EngineError, match="Redis"):
            await engine.relay.publish(key(), b"lost")
        assert [EngineError] * 4 == [type(each) for each in failed]
        assert time.monotonic() - began < 2

        own_server.start()
        await eventually(engine)

        assert [] == await counts(engine)  # it keeps nothing
        await cast(engine, "U2", "b")
        assert [("b", 1)] == await counts(engine)
        async with asyncio.timeout(5):
            while not there.heard:  # it has to have subscribed again
                await engine.relay.publish(key(), b"1")
                await asyncio.sleep(0.05)
        assert {(key(), b"1")} == set(there.heard)


async def test_a_server_that_does_not_answer_fails_operations_in_time(own_server: RedisServer) -> None:
    async with open_engine(own_server.url(), namespace="main") as engine:
        await write(engine, b"1")
        own_server.stop()

        began = time.monotonic()
        failed = await asyncio.gather(*(write(engine, b"%d" % n) for n in range(20)), return_exceptions=True)
        assert {EngineError} == {type(each) for each in failed}
        assert time.monotonic() - began < 1.5 * TIMEOUT  # also those that waited for their turn

        own_server.go_on()
        await eventually(engine)
        assert await read(engine) == b"1"


async def test_what_was_refused_never_undoes_what_was_acknowledged_since(own_server: RedisServer) -> None:
    """The cast that was given up is still on its way when the voter's next one has been counted."""
    with Wire(own_server.port) as wire:
        async with open_engine(wire.url(), namespace="main") as engine:
            await cast(engine, "U1", "a")
            wire.delay()
            with pytest.raises(EngineError):
                await cast(engine, "U1", "b")
            await eventually(engine)
            await cast(engine, "U1", "c")
            there = wire.connections
            wire.mend()

            await comes_true(lambda: wire.connections < there)  # it has arrived

            assert [("c", 1)] == await counts(engine)


async def test_a_server_that_has_become_a_replica_is_left_for_the_one_that_its_name_now_stands_for(
    own_server: RedisServer, tmp_path_factory: pytest.TempPathFactory
) -> None:
    with RedisServer(tmp_path_factory.mktemp("redis")) as promoted, Wire(own_server.port) as wire:
        async with open_engine(wire.url(), namespace="main") as engine:
            with redis.Redis.from_url(own_server.url()) as database:
                database.replicaof("127.0.0.1", "1")  # nobody is there, and it goes on serving what it has
            wire.lead_to(promoted.port)

            with pytest.raises(EngineError):
                await engine.check()

            await engine.check()
            await write(engine, b"1")


async def test_a_server_that_was_told_to_forget_its_scripts_is_told_them_again(
    own_server: RedisServer,
) -> None:
    async with open_engine(own_server.url(), namespace="main") as engine:
        await write(engine, b"1")
        with redis.Redis.from_url(own_server.url()) as database:
            database.script_flush()

        assert [b"1", None] == await asyncio.gather(read(engine), write(engine, b"2", key("two")))
        assert await read(engine, key("two")) == b"2"


async def test_a_server_whose_memory_is_full_refuses_writes_and_serves_readings(own_server: RedisServer) -> None:
    async with open_engine(own_server.url(), namespace="main") as engine:
        await write(engine, b"1")
        with redis.Redis.from_url(own_server.url()) as database:
            database.config_set("maxmemory", "1")

            with pytest.raises(EngineError, match="maxmemory"):
                await write(engine, b"2")
            assert await read(engine) == b"1"
            with pytest.raises(EngineError, match="maxmemory"):
                await engine.check()
            database.config_set("maxmemory", "0")
        await engine.check()
        await write(engine, b"2")
        assert await read(engine) == b"2"


@pytest.mark.parametrize(("policy", "warnings"), [("allkeys-lru", 1), ("volatile-lru", 0), ("noeviction", 0)])
async def test_a_server_that_may_forget_what_it_keeps_is_warned_of(
    own_server: RedisServer, policy: str, warnings: int
) -> None:
    with redis.Redis.from_url(own_server.url()) as database:
        database.config_set("maxmemory", "100mb")
        database.config_set("maxmemory-policy", policy)

    async with open_engine(own_server.url(), namespace="main") as engine:
        assert [policy] * warnings == [policy for each in engine.warnings if "noeviction" in each]


async def test_where_no_server_is_the_engine_does_not_open() -> None:
    with pytest.raises(EngineError, match="Redis"):
        async with open_engine("redis://127.0.0.1:1/0", namespace="main"):
            pass


async def test_a_subscription_on_which_nothing_comes_any_more_is_made_anew(
    own_server: RedisServer, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(relay, "PING_AFTER", 0.4)
    async with (
        open_engine(own_server.url(), namespace="main") as engine,
        open_engine(own_server.url(), namespace="main") as second,
    ):
        there = Listener(second)
        with redis.Redis.from_url(own_server.url(), protocol=2) as database:
            before = subscriptions(database)
            await comes_true(lambda: last_commands(database) == {"ping"})
            assert before == subscriptions(database)  # it has only been asked whether it stands
            own_server.stop()
            await comes_true(lambda: caplog.text.count("cannot receive") == 2)
            own_server.go_on()
            await comes_true(lambda: len(subscriptions(database) - before) == 2)

        await engine.relay.publish(key(), b"1")
        await there.has(1)


async def comes_true(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(10):
        while not condition():  # noqa: ASYNC110 (it is another process that has to be waited for)
            await asyncio.sleep(0.05)


def subscriptions(database: redis.Redis) -> set[str]:
    """The connections that have subscribed."""
    return {client["id"] for client in database.client_list(_type="pubsub")}


def last_commands(database: redis.Redis) -> set[str]:
    """What those that have subscribed said last."""
    return {client["cmd"] for client in database.client_list(_type="pubsub")}
