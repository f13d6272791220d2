"""Two nodes of the service on a Redis Cluster, whose own nodes fail."""

from __future__ import annotations

from pathlib import Path

import pytest

from engines.redis_server import ClusterNode, RedisCluster
from faults.crowd import ACKNOWLEDGED, REFUSED, Crowd
from faults.redis_nodes import Watch, check_account, is_ready, ms, nodes, seconds_until, wait_for_broadcast
from faults.rounds import ROUNDS
from support.socket_client import linked_game

NAMESPACE = "sandbox"


@pytest.mark.slow
@pytest.mark.parametrize("fault", ["killed", "paused"])
@pytest.mark.long
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
                crowd.wait_for(ACKNOWLEDGED, 300)
                failed = cluster.owner(NAMESPACE)
                fail(failed)
                crowd.wait_for(REFUSED, 20)
                back = max(back, seconds_until(lambda: is_ready(one) and is_ready(other)))
                received = max(received, wait_for_broadcast(one, game))
                assert failed is not cluster.owner(NAMESPACE)
                restart(failed)
                seconds_until(failed.is_copy)
            crowd.wait_for(ACKNOWLEDGED, 300)

        check_account(crowd, other, f"back after {ms(back)}", f"broadcasts after {ms(received)}", keeps_all=False)
        watch.check()
