"""Redis accepts no writes for a while: it became a replica, or still loads its file."""

from __future__ import annotations

from pathlib import Path

import pytest
import redis

from engines.redis_server import RedisServer
from faults.crowd import ACKNOWLEDGED, REFUSED, Crowd
from faults.redis_nodes import check_account, is_ready, ms, seconds_until, two_nodes
from support.process import ServerProcess
from support.service import CHANNEL


def both_are_ready(nodes: list[ServerProcess]) -> bool:
    return all(map(is_ready, nodes))


@pytest.mark.long
def test_nodes_on_a_replica_are_not_ready_until_it_is_primary_again(tmp_path: Path) -> None:
    crowd = Crowd(size=4)
    with RedisServer(tmp_path) as server, two_nodes(server) as nodes, redis.Redis.from_url(server.url()) as database:
        crowd.prepare(nodes[0])
        with crowd.writing(nodes[0]), crowd.writing(nodes[1]):
            crowd.wait_for(ACKNOWLEDGED, 300)
            database.replicaof("127.0.0.1", "1")
            crowd.wait_for(REFUSED, 100)
            assert [False, False] == [is_ready(each) for each in nodes]
            with nodes[1].client("viewer", user="1", channel=CHANNEL) as viewer:
                assert 503 == viewer.post("vote", json={"value": 1}).status_code
            database.replicaof("NO", "ONE")
            back = seconds_until(lambda: both_are_ready(nodes))
            crowd.wait_for(ACKNOWLEDGED, 300)

        check_account(crowd, nodes[1], f"back after {ms(back)}")


@pytest.mark.long
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
