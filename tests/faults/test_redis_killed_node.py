"""One of two nodes on Redis is killed under load: the other continues, and no acknowledged write is lost."""

from __future__ import annotations

from pathlib import Path

import pytest

from engines.redis_server import RedisServer
from faults.crowd import ACKNOWLEDGED, Crowd
from faults.redis_nodes import check_account, ms, nodes, wait_for_broadcast
from faults.rounds import ROUNDS
from support.socket_client import linked_game


@pytest.mark.long
def test_a_killed_node_loses_nothing_and_the_other_continues(tmp_path: Path) -> None:
    crowd = Crowd(size=4)
    waited = 0.0
    with RedisServer(tmp_path) as server, nodes(server.url()) as (other,), linked_game(other) as game:
        game.data("subscribe", "news")
        crowd.prepare(other)
        for _ in range(ROUNDS):
            with nodes(server.url()) as (one,), crowd.writing(other), crowd.writing(one):
                crowd.wait_for(ACKNOWLEDGED, 300)
                one.process.kill()
                one.process.wait()
                waited = max(waited, crowd.wait_for(ACKNOWLEDGED))
                crowd.wait_for(ACKNOWLEDGED, 300)
        with nodes(server.url()) as (again,):
            wait_for_broadcast(again, game)
            check_account(crowd, again, f"the other node answered again after {ms(waited)}")
