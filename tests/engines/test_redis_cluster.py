"""The contract on a Redis Cluster, and slots that move while the engine works."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from itertools import count

import pytest

from emulator.engines.engine import Engine
from emulator.engines.opening import open_engine
from emulator.engines.records import SpentRecord
from emulator.engines.redis import pipeline
from emulator.engines.shapes import CastRequest
from emulator.errors import EngineError
from engines.contract import EngineContract
from engines.contract_dump import dumped
from engines.pool_shorthand import draw, stocked
from engines.redis_server import RedisCluster
from engines.shorthand import END, NOW, Listener, Open, cast, counts, entries, key, read, wait_until_connected, write

pytestmark = pytest.mark.long
NAMES = count()


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisCluster]:
    with RedisCluster(tmp_path_factory.mktemp("cluster")) as cluster:
        yield cluster


@pytest.fixture
def name() -> str:
    """A namespace that no other test uses."""
    return f"n{next(NAMES)}"


@pytest.fixture
async def engine(cluster: RedisCluster, name: str) -> AsyncIterator[Engine]:
    async with open_engine(cluster.url(), namespace=name) as engine:
        yield engine


@pytest.fixture
async def second(cluster: RedisCluster, name: str) -> AsyncIterator[Engine]:
    """Another engine on the same data."""
    async with open_engine(cluster.primaries[1].url(), namespace=name) as engine:
        yield engine


class TestRedisCluster(EngineContract):
    @pytest.fixture
    def open(self, cluster: RedisCluster, name: str) -> Open:
        """Each test has other namespaces, and so other slots."""
        return lambda namespace: open_engine(cluster.url(), namespace=f"{name} {namespace}")


async def test_namespaces_are_spread_over_the_nodes(cluster: RedisCluster) -> None:
    names = [f"spread{number}" for number in range(12)]
    for name in names:
        async with open_engine(cluster.url(), namespace=name) as engine:
            await write(engine, name.encode())

    assert set(cluster.primaries) == {cluster.owner(name) for name in names}
    for name in names:
        async with open_engine(cluster.primaries[2].url(), namespace=name) as engine:
            assert name.encode() == await read(engine)


async def test_engines_follow_a_slot_to_another_node(
    cluster: RedisCluster, name: str, engine: Engine, second: Engine
) -> None:
    for each, voter in ((engine, "U1"), (second, "U2"), (engine, "U3")):
        await cast(each, voter, "a")
        with cluster.moving(name, cluster.other_primary(name)):
            pass

    assert [("a", 3)] == await counts(engine) == await counts(second)


async def test_a_crowd_votes_while_its_slot_moves_and_each_vote_counts_once(
    cluster: RedisCluster, name: str, engine: Engine, second: Engine
) -> None:
    """The keys move a few at a time, so for a while both nodes have a part of the ballot."""
    await engine.reset()  # then the key of the namespace exists, which is the first one of each script
    numbers, is_moved = count(), asyncio.Event()

    async def vote_until_moved(on: Engine) -> list[int]:
        done = []
        while not is_moved.is_set():
            number = next(numbers)
            await on.ballots.cast(key(), CastRequest(f"U{number}", "ab"[number % 2]), now=NOW, expires_at=END)
            done.append(number)
        return done

    for number in range(20):  # more keys than move at once
        await write(engine, b"1", key(f"other{number}"))
    voting = [asyncio.create_task(vote_until_moved(on)) for on in (engine, second) for _ in range(4)]
    for _ in range(3):
        with cluster.moving(name, cluster.other_primary(name)) as move_some:
            for _ in range(8):
                await asyncio.to_thread(move_some)
    is_moved.set()
    voted = [number for each in await asyncio.gather(*voting) for number in each]

    found = await entries(engine)
    assert sorted(f"U{number}" for number in voted) == sorted(entry.voter for entry in found)
    assert {"a", "b"} == {choice for choice, _ in await counts(engine)}
    assert len(voted) == sum(count for _, count in await counts(second))


async def test_operations_fail_in_time_and_change_nothing_while_a_slot_does_not_arrive(
    cluster: RedisCluster, name: str, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pipeline, "TIMEOUT", 0.1)
    await cast(engine, "U1", "a")
    await write(engine, b"1")

    with cluster.moving(name, cluster.other_primary(name)) as move_some:
        for _ in range(2):  # none of the keys has moved, then some have
            refused = await asyncio.gather(
                cast(engine, "U1", "b"),
                write(engine, b"2"),
                engine.check(),
                engine.reset(),
                engine.purge(now=END),
                return_exceptions=True,
            )
            assert {"Redis: the cluster is moving this data to another node; try again later"} == {
                str(error) for error in refused
            }
            move_some()

    await engine.check()
    assert [("a", 1)] == await counts(engine)
    assert b"1" == await read(engine)


async def test_messages_follow_a_slot_to_another_node(
    cluster: RedisCluster, name: str, engine: Engine, second: Engine
) -> None:
    listener = Listener(second)
    with cluster.moving(name, cluster.other_primary(name)):
        await engine.relay.publish(key(), b"1")
        await listener.has(1)

    await wait_until_connected([engine, second])
    assert [b"{emulator|%s}:relay:0" % name.encode()] == cluster.owner(name).run("PUBSUB", "SHARDCHANNELS")


async def test_a_dump_fails_if_its_slot_moves_while_it_lists_keys(
    cluster: RedisCluster, name: str, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    await stocked(engine, ["a", "b"])
    await draw(engine)
    scan = engine._pipeline.send

    async def move_and_scan(*command: bytes) -> object:
        with cluster.moving(name, cluster.other_primary(name)):
            monkeypatch.undo()
        return await scan(*command)

    monkeypatch.setattr(engine._pipeline, "send", move_and_scan)
    with pytest.raises(EngineError, match="the cluster moved this data to another node during a dump; try again"):
        await dumped(engine)

    spent = [record for record in await dumped(engine) if isinstance(record, SpentRecord)]
    assert 1 == len(spent)


async def test_tidying_after_a_move_leaves_no_keys_of_a_reset(cluster: RedisCluster, name: str, engine: Engine) -> None:
    await cast(engine, "U1", "a")
    await engine.reset()
    with cluster.moving(name, cluster.other_primary(name)):
        pass

    await engine.tidy()
    await engine.tidy()

    own = b"{emulator|%s}" % name.encode()
    assert {own, own + b":format", own + b":numbers"} == set(cluster.owner(name).run("KEYS", own + b"*"))
