"""The way between one of two nodes and Redis is cut: that node refuses, and the other goes on."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from engines.faulty_proxy import FaultyProxy
from engines.redis_server import RedisServer
from faults.crowd import ACKNOWLEDGED, REFUSED, Crowd
from faults.redis_nodes import SECONDS, Watch, is_ready, ms, nodes, seconds_until, settle, until_heard
from support.socket_client import linked_game


@pytest.mark.parametrize("how", ["swallow", "reset"])
def test_a_node_that_is_cut_off_refuses_while_the_other_goes_on(tmp_path: Path, how: str) -> None:
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
            time.sleep(max(0.0, cut + SECONDS - time.monotonic()))  # which is the fault
            proxy.restore()
            back = seconds_until(lambda: is_ready(one))
            heard = max(until_heard(other, game), until_heard(one, there))
            crowd.wait_for(ACKNOWLEDGED, 300)

        alive = f"alive within {ms(watch.slowest_live)}", f"no answer later than {ms(watch.slowest_ready)}"
        settle(crowd, other, f"back after {ms(back)}", f"broadcasts after {ms(heard)}", *alive)
        watch.check()
