"""What differs on a Redis Cluster: its client, messages, several namespaces, and a slot that moves to another node.

The scripts are those of a single server, so the rest of the contract runs only there.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from itertools import count

import pytest

from emulator.core.errors import EngineError
from emulator.storage.engine import Engine
from emulator.storage.opening import open_engine
from engines.contract_dump import DumpContract
from engines.contract_engine import NamespacesContract
from engines.contract_load import LoadContract
from engines.contract_relay import RelayContract
from engines.redis_server import RedisCluster
from engines.schedules import AcknowledgedContract
from engines.shorthand import (
    Open,
    cast,
    counts,
    read,
    wait_until_connected,
    write,
)

pytestmark = [pytest.mark.long, pytest.mark.usefixtures("unhurried")]
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


class TestRedisCluster(DumpContract, LoadContract, NamespacesContract, RelayContract, AcknowledgedContract):
    test_a_loaded_copy_dumps_and_behaves_the_same_after_any_history = None  # it runs on one server

    @pytest.fixture
    def open(self, cluster: RedisCluster, name: str) -> Open:
        """Each test has other namespaces, and so other slots."""
        return lambda namespace: open_engine(cluster.url(), namespace=f"{name} {namespace}")

    @pytest.fixture
    async def engine(self, open: Open) -> AsyncIterator[Engine]:
        async with open(namespace="main") as engine:
            yield engine


async def test_namespaces_are_spread_over_the_nodes(cluster: RedisCluster) -> None:
    names = [f"spread{number}" for number in range(12)]
    for name in names:
        async with open_engine(cluster.url(), namespace=name) as engine:
            await write(engine, name.encode())

    assert set(cluster.primaries) == {cluster.owner(name) for name in names}
    for name in names:
        async with open_engine(cluster.primaries[2].url(), namespace=name) as engine:
            assert name.encode() == await read(engine)


async def test_engines_and_messages_follow_a_slot_to_another_node(
    cluster: RedisCluster, name: str, engine: Engine, second: Engine
) -> None:
    for each, voter in ((engine, "U1"), (second, "U2"), (engine, "U3")):
        await cast(each, voter, "a")
        with cluster.moving(name, cluster.other_primary(name)):
            pass

    assert [("a", 3)] == await counts(engine) == await counts(second)
    await wait_until_connected([engine, second])


async def test_operations_fail_and_change_nothing_while_a_slot_moves(
    cluster: RedisCluster, name: str, engine: Engine
) -> None:
    await cast(engine, "U1", "a")

    with cluster.moving(name, cluster.other_primary(name)):
        refused = await asyncio.gather(cast(engine, "U1", "b"), engine.reset(), return_exceptions=True)

    assert [EngineError] * 2 == [type(each) for each in refused]
    assert [("a", 1)] == await counts(engine)
