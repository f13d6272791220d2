"""Redis is killed under load and restarted on its append-only file."""

from __future__ import annotations

from pathlib import Path

import pytest
import redis

from engines.redis_server import RedisServer
from faults.crowd import ACKNOWLEDGED, REFUSED, Crowd
from faults.redis_nodes import Watch, check_account, is_ready, ms, seconds_until, two_nodes, wait_for_broadcast
from faults.rounds import ROUNDS
from support.socket_client import linked_game

pytestmark = pytest.mark.long


def has_written_all(server: RedisServer) -> bool:
    with redis.Redis.from_url(server.url()) as database:
        status = database.info("persistence")
    return (0, 0) == (status["aof_buffer_length"], status["aof_pending_bio_fsync"])


@pytest.mark.parametrize(
    ("appendfsync", "keeps_all"), [("always", True), pytest.param("everysec", False, marks=pytest.mark.long)]
)
def test_nodes_refuse_while_redis_is_dead_and_recover_with_its_data(
    tmp_path: Path, appendfsync: str, keeps_all: bool
) -> None:
    """With `everysec` and a busy disk Redis answers before it writes, so the last moments may be lost."""
    crowd = Crowd(size=4)
    back = received = 0.0
    with (
        RedisServer(tmp_path, "--appendonly", "yes", "--appendfsync", appendfsync) as server,
        two_nodes(server) as (one, other),
        linked_game(other) as game,
    ):
        game.data("subscribe", "news")
        crowd.prepare(one)
        seconds_until(lambda: has_written_all(server))
        with crowd.writing(one), crowd.writing(other), Watch(one) as watch:
            for _ in range(ROUNDS):
                crowd.wait_for(ACKNOWLEDGED, 300)
                server.kill()
                crowd.wait_for(REFUSED, 20)
                assert (False, False) == (is_ready(one), is_ready(other))
                server.start()
                back = max(back, seconds_until(lambda: is_ready(one) and is_ready(other)))
                received = max(received, wait_for_broadcast(one, game))
            crowd.wait_for(ACKNOWLEDGED, 300)

        check_account(crowd, other, f"back after {ms(back)}", f"broadcasts after {ms(received)}", keeps_all=keeps_all)
        watch.check()
