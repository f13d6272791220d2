"""The relay on Redis: servers with and without sharded channels, reconnection, and messages of others."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from functools import partial
from pathlib import Path

import pytest
import redis
import uvloop

from emulator.engines.engine import Engine
from emulator.engines.opening import open_engine
from emulator.engines.redis import relay
from engines.contract_relay import LAST, RelayContract
from engines.faulty_proxy import FaultyProxy
from engines.redis_server import RedisServer
from engines.shorthand import WITHIN, Listener, Open, key, wait_until_connected

SHARDED = ("SSUBSCRIBE", "SPUBLISH")
OLDER = [word for name in SHARDED for word in ("--rename-command", name, "")]
"""Options that remove these commands, which servers before version 7 lack."""


@pytest.fixture
def server(tmp_path: Path) -> Iterator[RedisServer]:
    with RedisServer(tmp_path) as server:
        yield server


@pytest.fixture(scope="module")
def older(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    with RedisServer(tmp_path_factory.mktemp("redis"), *OLDER) as server:
        yield server


class TestOnAnOlderServer(RelayContract):
    @pytest.fixture
    def open(self, older: RedisServer) -> Open:
        return partial(open_engine, older.url())

    @pytest.fixture
    async def engine(self, open: Open) -> AsyncIterator[Engine]:
        async with open(namespace="main") as engine:
            yield engine


@pytest.mark.parametrize(("before", "after"), [([], OLDER), (OLDER, [])], ids=["an older", "a newer"])
async def test_engines_adapt_to_a_server_of_another_version(
    server: RedisServer, before: list[str], after: list[str]
) -> None:
    server.kill()
    server.start(*before)
    async with (
        open_engine(server.url(), namespace="main") as one,
        open_engine(server.url(), namespace="main") as two,
    ):
        await wait_until_connected([one, two])
        server.kill()
        server.start(*after)

        await wait_until_connected([one, two])
        async with open_engine(server.url(), namespace="main") as fresh:
            await wait_until_connected([one, two, fresh])


def test_the_relay_recovers_from_a_reset_at_any_moment(server: RedisServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs in uvloop, as the service does, because it raises other exceptions for lost connections."""
    monkeypatch.setattr(relay, "RETRY_AFTER", 0.001)

    async def reset_often() -> None:
        with FaultyProxy(server.port) as proxy:
            async with (
                open_engine(proxy.url(), namespace="main") as one,
                open_engine(server.url(), namespace="main") as two,
            ):
                proxy.reset()
                async with asyncio.timeout(6 * WITHIN):  # only so that the test ends: a busy machine needs over 10 s
                    while proxy.refused < 200:  # noqa: ASYNC110 (another thread changes it)
                        await asyncio.sleep(0.02)
                proxy.restore()

                await wait_until_connected([one, two])

    uvloop.run(reset_often())


async def test_a_namespace_has_a_sharded_channel_if_the_server_supports_it(server: RedisServer) -> None:
    async with open_engine(server.url(), namespace="main"):
        with redis.Redis.from_url(server.url()) as database:
            assert [b"{emulator|main}:relay:0"] == database.execute_command("PUBSUB", "SHARDCHANNELS")
            assert [] == database.pubsub_channels()


async def test_messages_do_not_cross_databases_of_a_server(server: RedisServer) -> None:
    async with (
        open_engine(server.url(1), namespace="main") as one,
        open_engine(server.url(2), namespace="main") as other,
        open_engine(server.url(2), namespace="main") as peer,
    ):
        theirs, peers = Listener(other), Listener(peer)

        await one.relay.publish(key(), b"mine")
        await other.relay.publish(key(), LAST)
        await peers.has(1)  # published after mine

        assert [(key(), LAST)] == theirs.received == peers.received


async def test_messages_of_other_programs_are_ignored(server: RedisServer) -> None:
    async with (
        open_engine(server.url(), namespace="main") as engine,
        open_engine(server.url(), namespace="main") as second,
    ):
        listener = Listener(engine)
        with redis.Redis.from_url(server.url()) as database:
            for junk in (b"", b"hello", b"x" * 16 + (3).to_bytes(4, "big") + b"\xff|a|b", b"\xff" * 99):
                assert 2 == database.execute_command("SPUBLISH", "{emulator|main}:relay:0", junk)

        await second.relay.publish(key(), b"1")

        await listener.has(1)
