"""Redis is paused under load, with open connections, and continues."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from engines.redis_server import RedisServer
from faults.crowd import ACKNOWLEDGED, REFUSED, Crowd
from faults.redis_nodes import SECONDS, Watch, check_account, is_ready, ms, seconds_until, two_nodes, wait_for_broadcast
from support.socket_client import linked_game


@pytest.mark.long
def test_with_a_paused_redis_no_call_hangs_and_no_write_repeats(tmp_path: Path) -> None:
    crowd = Crowd(size=4)
    with (
        RedisServer(tmp_path) as server,
        two_nodes(server) as (one, other),
        linked_game(other) as game,
    ):
        game.data("subscribe", "news")
        crowd.prepare(one)
        with crowd.writing(one), crowd.writing(other), Watch(one) as watch:
            crowd.wait_for(ACKNOWLEDGED, 300)
            server.stop()
            stopped = time.monotonic()
            crowd.wait_for(REFUSED, 10)
            time.sleep(max(0.0, stopped + SECONDS - time.monotonic()))
            assert (False, False) == (is_ready(one), is_ready(other))
            server.go_on()
            back = seconds_until(lambda: is_ready(one) and is_ready(other))
            received = wait_for_broadcast(one, game)
            crowd.wait_for(ACKNOWLEDGED, 300)

        alive = f"alive within {ms(watch.slowest_live)}", f"no response later than {ms(watch.slowest_ready)}"
        check_account(crowd, other, f"back after {ms(back)}", f"broadcasts after {ms(received)}", *alive)
        watch.check()
