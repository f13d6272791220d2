"""Redis is out of memory and evicts nothing: writes are refused, reads continue."""

from __future__ import annotations

from pathlib import Path

import pytest
import redis

from engines.redis_server import RedisServer
from faults.crowd import ACKNOWLEDGED, REFUSED, Crowd
from faults.redis_nodes import check_account, is_ready, ms, seconds_until, two_nodes
from support.service import CHANNEL

pytestmark = pytest.mark.long


def test_a_full_redis_refuses_writes_until_it_has_memory(tmp_path: Path) -> None:
    crowd = Crowd(size=4)
    with (
        RedisServer(tmp_path) as server,
        two_nodes(server) as (one, other),
        redis.Redis.from_url(server.url()) as database,
    ):
        crowd.prepare(one)
        with crowd.writing(one), crowd.writing(other):
            crowd.wait_for(ACKNOWLEDGED, 300)
            database.config_set("maxmemory", "1mb")
            crowd.wait_for(REFUSED, 300)
            assert (False, False) == (is_ready(one), is_ready(other))
            with other.client("viewer", user="1", channel=CHANNEL) as viewer:
                refused, read = viewer.post("vote", json={"value": 1}), viewer.get("vote")
                assert (503, "1", 200) == (refused.status_code, refused.headers["retry-after"], read.status_code)
            database.config_set("maxmemory", "0")
            back = seconds_until(lambda: is_ready(one) and is_ready(other))
            crowd.wait_for(ACKNOWLEDGED, 300)

        check_account(crowd, other, f"back after {ms(back)}")
