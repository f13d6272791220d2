"""A Redis server that crashes, hangs, loses data or is full: operations fail in time, and recover with it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import redis

from emulator.core.errors import EngineError
from emulator.storage.engine import Engine
from emulator.storage.opening import open_engine
from emulator.storage.redis import relay
from emulator.storage.redis.client import TIMEOUT
from engines.faulty_proxy import FaultyProxy
from engines.redis_server import RedisServer
from engines.shorthand import NOW, Listener, cast, key, purged, read, write

pytestmark = pytest.mark.long


@pytest.fixture
def own_server(tmp_path: Path) -> Iterator[RedisServer]:
    """A server that the test may stop or kill."""
    with RedisServer(tmp_path) as server:
        yield server


async def wait_until_usable(engine: Engine) -> None:
    async with asyncio.timeout(5):
        while True:
            try:
                await engine.check()
            except EngineError:
                await asyncio.sleep(0.02)
            else:
                return


async def test_operations_time_out_if_redis_hangs(own_server: RedisServer) -> None:
    async with open_engine(own_server.url(), namespace="main") as engine:
        await write(engine, b"1")
        own_server.stop()

        began = time.monotonic()
        writes = (write(engine, b"%d" % n) for n in range(20))
        others = cast(engine, "U1", "a"), purged(engine, now=NOW), engine.check(), engine.relay.publish(key(), b"lost")
        failed = await asyncio.gather(*writes, *others, return_exceptions=True)
        assert {EngineError} == {EngineError if isinstance(each, EngineError) else each for each in failed}
        assert time.monotonic() - began < 1.5 * TIMEOUT  # also queued ones

        own_server.go_on()
        await wait_until_usable(engine)
        assert await read(engine) == b"1"


async def test_the_engine_reconnects_if_its_server_becomes_a_replica(
    own_server: RedisServer, tmp_path_factory: pytest.TempPathFactory
) -> None:
    with RedisServer(tmp_path_factory.mktemp("redis")) as promoted, FaultyProxy(own_server.port) as proxy:
        async with open_engine(proxy.url(), namespace="main") as engine:
            with redis.Redis.from_url(own_server.url()) as database:
                database.replicaof("127.0.0.1", "1")  # there is no such primary, so it keeps its data
            proxy.forward_to(promoted.port)

            with pytest.raises(EngineError):
                await engine.check()

            await engine.check()
            await write(engine, b"1")


async def test_flushed_scripts_are_loaded_again(own_server: RedisServer) -> None:
    async with open_engine(own_server.url(), namespace="main") as engine:
        await write(engine, b"1")
        with redis.Redis.from_url(own_server.url()) as database:
            database.script_flush()

        assert [b"1", None] == await asyncio.gather(read(engine), write(engine, b"2", key("two")))
        assert await read(engine, key("two")) == b"2"


async def test_a_full_redis_refuses_writes_and_serves_reads(own_server: RedisServer) -> None:
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
async def test_an_eviction_policy_that_may_lose_data_gives_a_warning(
    own_server: RedisServer, policy: str, warnings: int
) -> None:
    with redis.Redis.from_url(own_server.url()) as database:
        database.config_set("maxmemory", "100mb")
        database.config_set("maxmemory-policy", policy)

    async with open_engine(own_server.url(), namespace="main") as engine:
        assert [policy] * warnings == [policy for each in engine.warnings if "noeviction" in each]


async def opening_error(url: str) -> str:
    with pytest.raises(EngineError) as error:
        async with open_engine(url, namespace="main"):
            pass
    return str(error.value)


async def test_opening_fails_without_a_usable_server(own_server: RedisServer) -> None:
    assert (await opening_error("redis://nowhere.invalid:1/0")).startswith("Redis: ")
    hint = await opening_error(own_server.url().replace("redis:", "rediss:", 1))
    assert hint.endswith("; rediss:// needs a server with TLS; without TLS, use redis://")
    with redis.Redis.from_url(own_server.url()) as database:
        database.replicaof("127.0.0.1", "1")  # there is no such primary
    assert "read only" in await opening_error(own_server.url())
    own_server.stop()
    assert "Redis: no reply within 2 seconds" == await opening_error(own_server.url())


async def test_a_silent_subscription_is_pinged_and_then_replaced(
    own_server: RedisServer, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(relay, "PING_AFTER", 0.4)
    async with (
        open_engine(own_server.url(), namespace="main") as engine,
        open_engine(own_server.url(), namespace="main") as second,
    ):
        listener = Listener(second)
        with redis.Redis.from_url(own_server.url(), protocol=2) as database:
            before = subscriptions(database)
            await wait_until(lambda: last_commands(database) == {"ping"})
            assert before == subscriptions(database)  # only pinged, not replaced
            own_server.stop()
            await wait_until(lambda: caplog.text.count("cannot receive") == 2)
            own_server.go_on()
            await wait_until(lambda: len(subscriptions(database) - before) == 2)

        await engine.relay.publish(key(), b"1")
        await listener.has(1)


async def wait_until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(10):
        while not condition():  # noqa: ASYNC110 (another process changes it)
            await asyncio.sleep(0.05)


def subscriptions(database: redis.Redis) -> set[str]:
    """Return the ids of the connections that have subscribed."""
    return {client["id"] for client in database.client_list(_type="pubsub")}


def last_commands(database: redis.Redis) -> set[str]:
    """Return the last commands of the connections that have subscribed."""
    return {client["cmd"] for client in database.client_list(_type="pubsub")}
