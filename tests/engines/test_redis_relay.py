"""The relay on Redis: reconnection, and messages of others."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis
import uvloop

from emulator.storage.opening import open_engine
from emulator.storage.redis import relay
from engines.contract_relay import LAST
from engines.faulty_proxy import FaultyProxy
from engines.redis_server import RedisServer
from engines.shorthand import WITHIN, Listener, key, wait_until_connected


@pytest.fixture
def server(tmp_path: Path) -> Iterator[RedisServer]:
    with RedisServer(tmp_path) as server:
        yield server


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
                assert 2 == database.publish("{emulator|main}:relay:0", junk)

        await second.relay.publish(key(), b"1")

        await listener.has(1)
