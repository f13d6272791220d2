"""The network between one of two nodes and Redis is cut: that node refuses, the other continues."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from engines.faulty_proxy import FaultyProxy
from engines.redis_server import RedisServer
from faults.crowd import ACKNOWLEDGED, REFUSED, Crowd
from faults.redis_nodes import SECONDS, Watch, check_account, is_ready, ms, nodes, seconds_until, wait_for_broadcast
from support.socket_client import linked_game


@pytest.mark.long
@pytest.mark.parametrize("how", ["swallow", "reset"])
def test_a_node_cut_off_from_redis_refuses_and_the_other_continues(tmp_path: Path, how: str) -> None:
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
            crowd.wait_for(ACKNOWLEDGED, 300)
            getattr(proxy, how)()
            cut = time.monotonic()
            crowd.wait_for(REFUSED, 10)
            crowd.wait_for(ACKNOWLEDGED, 300)
            assert (False, True) == (is_ready(one), is_ready(other))
            time.sleep(max(0.0, cut + SECONDS - time.monotonic()))
            proxy.restore()
            back = seconds_until(lambda: is_ready(one))
            received = max(wait_for_broadcast(other, game), wait_for_broadcast(one, there))
            crowd.wait_for(ACKNOWLEDGED, 300)

        alive = f"alive within {ms(watch.slowest_live)}", f"no response later than {ms(watch.slowest_ready)}"
        check_account(crowd, other, f"back after {ms(back)}", f"broadcasts after {ms(received)}", *alive)
        watch.check()
