"""The relay on Redis with channels of a slot, and on servers that know none; and what is not for it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest
import redis
import uvloop

from emulator.engines import open_engine
from emulator.engines.engine import Engine
from emulator.engines.redis import relay
from emulator.errors import EngineError
from engines.contract_relay import LAST, RelayContract
from engines.redis_server import RedisServer
from engines.severable_link import Wire
from engines.shorthand import WITHIN, Listener, Open, key

SHARDED = ("SSUBSCRIBE", "SPUBLISH")
OLDER = [word for name in SHARDED for word in ("--rename-command", name, "")]
"""Has a server not know these, as those before 7 do not."""


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


async def reach_each_other(engines: Sequence[Engine]) -> None:
    """Publish by each until the others have heard of it: what is said while one subscribes anew is lost to it."""
    for publisher in engines:
        listeners = [Listener(each) for each in engines if each is not publisher]
        async with asyncio.timeout(WITHIN):
            while not all(each.heard for each in listeners):
                with suppress(EngineError):
                    await publisher.relay.publish(key(), b"1")
                await asyncio.sleep(0.02)


@pytest.mark.parametrize(("before", "after"), [([], OLDER), (OLDER, [])], ids=["an older", "a newer"])
async def test_all_engines_go_over_to_the_words_of_a_server_that_takes_the_place_of_theirs(
    server: RedisServer, before: list[str], after: list[str]
) -> None:
    server.kill()
    server.start(*before)
    async with (
        open_engine(server.url(), namespace="main") as one,
        open_engine(server.url(), namespace="main") as two,
    ):
        await reach_each_other([one, two])
        server.kill()
        server.start(*after)

        await reach_each_other([one, two])
        async with open_engine(server.url(), namespace="main") as fresh:
            await reach_each_other([one, two, fresh])


def test_an_engine_whose_connections_are_broken_at_every_moment_of_their_lives_hears_again(
    server: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the loop that the service runs in, which has words of its own for what is broken."""
    monkeypatch.setattr(relay, "RETRY_AFTER", 0.001)

    async def broken_often() -> None:
        with Wire(server.port) as wire:
            async with (
                open_engine(wire.url(), namespace="main") as one,
                open_engine(server.url(), namespace="main") as two,
            ):
                wire.reset()
                async with asyncio.timeout(WITHIN):
                    while wire.refused < 200:  # noqa: ASYNC110 (it is another thread that counts)
                        await asyncio.sleep(0.02)
                wire.mend()

                await reach_each_other([one, two])

    uvloop.run(broken_often())


async def test_a_namespace_has_a_channel_of_its_slot_where_the_server_has_such(server: RedisServer) -> None:
    async with open_engine(server.url(), namespace="main"):
        with redis.Redis.from_url(server.url()) as database:
            assert [b"{emulator|main}:relay:0"] == database.execute_command("PUBSUB", "SHARDCHANNELS")
            assert [] == database.pubsub_channels()


async def test_two_databases_of_a_server_do_not_hear_each_other(server: RedisServer) -> None:
    async with (
        open_engine(server.url(1), namespace="main") as one,
        open_engine(server.url(2), namespace="main") as other,
        open_engine(server.url(2), namespace="main") as peer,
    ):
        theirs, peers = Listener(other), Listener(peer)

        await one.relay.publish(key(), b"mine")
        await other.relay.publish(key(), LAST)
        await peers.has(1)  # which was said later than mine

        assert [(key(), LAST)] == theirs.heard == peers.heard


async def test_what_another_program_publishes_on_the_channel_is_passed_over(server: RedisServer) -> None:
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
