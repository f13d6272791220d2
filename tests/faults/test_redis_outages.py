"""Redis, the way to it, or a node fails: nodes that cannot write refuse and recover, and none starts without Redis."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest
import redis

from engines.faulty_proxy import FaultyProxy
from engines.redis_server import ClusterNode, RedisCluster, RedisServer
from faults.crowd import ACKNOWLEDGED, REFUSED, Crowd
from faults.redis_nodes import Watch, check_account, is_ready, ms, nodes, seconds_until, two_nodes, wait_for_broadcast
from faults.rounds import ROUNDS
from faults.writes import CHANNEL
from support.process import COMMAND, ServerProcess
from support.socket_client import linked_game

pytestmark = pytest.mark.long
Act = Callable[[RedisServer, redis.Redis], object]


class Outage(NamedTuple):
    """How Redis fails, how it works again, and the options of its server."""

    begin: Act
    end: Act
    options: tuple[str, ...] = ()


OUTAGES = {
    "killed": Outage(
        lambda server, _: server.kill(),
        lambda server, _: server.start(),
        ("--appendonly", "yes", "--appendfsync", "always"),
    ),
    "paused": Outage(lambda server, _: server.stop(), lambda server, _: server.go_on()),
    "full": Outage(
        lambda _, database: database.config_set("maxmemory", "1mb"),
        lambda _, database: database.config_set("maxmemory", "0"),
    ),
}


def has_written_all(database: redis.Redis) -> bool:
    status = database.info("persistence")
    return (0, 0) == (status.get("aof_buffer_length", 0), status.get("aof_pending_bio_fsync", 0))


@pytest.mark.parametrize("name", OUTAGES)
def test_nodes_refuse_during_an_outage_and_recover(tmp_path: Path, name: str) -> None:
    outage, crowd = OUTAGES[name], Crowd(size=4)
    back = received = 0.0
    with (
        RedisServer(tmp_path, *outage.options) as server,
        two_nodes(server) as (one, other),
        linked_game(other) as game,
        redis.Redis.from_url(server.url()) as database,
        other.client("viewer", user="1", channel=CHANNEL) as viewer,
    ):
        game.data("subscribe", "news")
        crowd.prepare(one)
        seconds_until(lambda: has_written_all(database))
        with crowd.writing(one), crowd.writing(other), Watch(one) as watch:
            for _ in range(ROUNDS):
                crowd.wait_for(ACKNOWLEDGED, 150)
                outage.begin(server, database)
                crowd.wait_for(REFUSED, 20)
                assert (False, False) == (is_ready(one), is_ready(other))
                assert name != "full" or viewer.get("vote").status_code == 200, "reads go on"
                outage.end(server, database)
                back = max(back, seconds_until(lambda: is_ready(one) and is_ready(other)))
                received = max(received, wait_for_broadcast(one, game))
            crowd.wait_for(ACKNOWLEDGED, 150)
        alive = f"alive within {ms(watch.slowest_live)}", f"no response later than {ms(watch.slowest_ready)}"
        notes = (f"back after {ms(back)}", f"broadcasts after {ms(received)}", *alive)
        check_account(crowd, other, *notes)
        watch.check()


def both_are_ready(nodes: list[ServerProcess]) -> bool:
    return all(map(is_ready, nodes))


def test_nodes_are_not_ready_while_redis_loads_its_file(tmp_path: Path) -> None:
    crowd = Crowd(size=4)
    with RedisServer(tmp_path) as server, two_nodes(server) as nodes:
        crowd.prepare(nodes[0])
        with crowd.writing(nodes[0]), crowd.writing(nodes[1]):
            crowd.wait_for(ACKNOWLEDGED, 300)
        with redis.Redis.from_url(server.url()) as database:
            database.save()
            server.kill()
            server.launch("--key-load-delay", "10000", "--loading-process-events-interval-bytes", "1024")
            with crowd.writing(nodes[0]), crowd.writing(nodes[1]):
                seconds_until(lambda: is_loading(database))
                crowd.wait_for(REFUSED, 10)
                assert is_loading(database)
                assert [False, False] == [is_ready(each) for each in nodes]
                server.wait()
                back = seconds_until(lambda: both_are_ready(nodes))
                crowd.wait_for(ACKNOWLEDGED, 300)

        check_account(crowd, nodes[1], f"back after {ms(back)}")


def is_loading(database: redis.Redis) -> bool:
    try:
        database.ping()
    except redis.exceptions.BusyLoadingError:
        return True
    except redis.exceptions.ConnectionError:  # not started yet
        pass
    return False


def test_a_killed_node_loses_nothing_and_the_other_continues(tmp_path: Path) -> None:
    crowd = Crowd(size=4)
    waited = 0.0
    with RedisServer(tmp_path) as server, nodes(server.url()) as (other,), linked_game(other) as game:
        game.data("subscribe", "news")
        crowd.prepare(other)
        for _ in range(ROUNDS):
            with nodes(server.url()) as (one,), crowd.writing(other), crowd.writing(one):
                crowd.wait_for(ACKNOWLEDGED, 150)
                one.process.kill()
                one.process.wait()
                waited = max(waited, crowd.wait_for(ACKNOWLEDGED))
                crowd.wait_for(ACKNOWLEDGED, 150)
        with nodes(server.url()) as (again,):
            wait_for_broadcast(again, game)
            check_account(crowd, again, f"the other node answered again after {ms(waited)}")


def test_a_node_cut_off_from_redis_refuses_and_the_other_continues(tmp_path: Path) -> None:
    crowd = Crowd(size=4)
    with (
        RedisServer(tmp_path) as server,
        FaultyProxy(server.port) as proxy,
        nodes(proxy.url(), server.url()) as (one, other),
        linked_game(one) as game,
        linked_game(other) as there,
    ):
        for each in (game, there):
            each.data("subscribe", "news")
        crowd.prepare(one)
        with crowd.writing(one), crowd.writing(other), Watch(one) as watch:
            crowd.wait_for(ACKNOWLEDGED, 150)
            proxy.swallow()
            crowd.wait_for(REFUSED, 10)
            crowd.wait_for(ACKNOWLEDGED, 150)
            assert (False, True) == (is_ready(one), is_ready(other))
            proxy.restore()
            back = seconds_until(lambda: is_ready(one))
            received = max(wait_for_broadcast(other, game), wait_for_broadcast(one, there))
            crowd.wait_for(ACKNOWLEDGED, 150)

        alive = f"alive within {ms(watch.slowest_live)}", f"no response later than {ms(watch.slowest_ready)}"
        check_account(crowd, other, f"back after {ms(back)}", f"broadcasts after {ms(received)}", *alive)
        watch.check()


NAMESPACE = "sandbox"


@pytest.mark.slow
@pytest.mark.parametrize("fault", ["killed", "paused"])
def test_nodes_go_on_with_the_replica_of_a_failed_redis_node(tmp_path: Path, fault: str) -> None:
    """Redis replicates after it answers, so the last moments before a failover may be lost."""
    fail, restart = {
        "killed": (ClusterNode.kill, ClusterNode.start),
        "paused": (ClusterNode.stop, ClusterNode.go_on),
    }[fault]
    crowd = Crowd(size=4)
    back = received = 0.0
    with (
        RedisCluster(tmp_path / "cluster", copied=NAMESPACE) as cluster,
        nodes(cluster.owner(NAMESPACE).url(), cluster.other_primary(NAMESPACE).url()) as (one, other),
        linked_game(other) as game,
    ):
        game.data("subscribe", "news")
        crowd.prepare(one)
        with crowd.writing(one), crowd.writing(other), Watch(one) as watch:
            for _ in range(ROUNDS):
                crowd.wait_for(ACKNOWLEDGED, 150)
                failed = cluster.owner(NAMESPACE)
                fail(failed)
                crowd.wait_for(REFUSED)
                back = max(back, seconds_until(lambda: is_ready(one) and is_ready(other)))
                received = max(received, wait_for_broadcast(one, game))
                assert failed is not cluster.owner(NAMESPACE)
                restart(failed)
                seconds_until(failed.is_copy)
            crowd.wait_for(ACKNOWLEDGED, 150)

        check_account(crowd, other, f"back after {ms(back)}", f"broadcasts after {ms(received)}", keeps_all=False)
        watch.check()


def test_a_node_without_redis_ends_with_one_line() -> None:
    ended = subprocess.run(
        [*COMMAND, "--port", "0", "--data", "redis://:hush@127.0.0.1:1/0"], capture_output=True, text=True, check=False
    )
    (line,) = ended.stderr.splitlines()

    assert (2, "") == (ended.returncode, ended.stdout)
    assert line.startswith("extcli serve: Redis: ")
    assert "hush" not in line
