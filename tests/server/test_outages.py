"""Each process logs the end of an outage once, even when idle."""

from __future__ import annotations

import re
import signal
from pathlib import Path

from engines.redis_server import RedisServer
from support.process import server_process
from support.service import CHANNEL

STORAGE_BACK = r"INFO emulator(?: \[.+\])?: storage answers again after \d+\.\d s\n"
DISCONNECTED = "cannot receive messages from other processes: "
RECONNECTED = "INFO emulator.engines: receiving messages from other processes again"


def test_the_end_of_each_outage_is_logged_once_by_an_idle_node(tmp_path: Path):
    with RedisServer(tmp_path) as redis, server_process("--data", redis.url()) as served:
        viewer = served.client("viewer", user="1", channel=CHANNEL)
        assert served.process.stderr is not None
        log = []
        for _ in range(2):
            redis.kill()
            assert [503] * 5 == [viewer.get("vote").status_code for _ in range(5)]
            redis.start()
            for line in served.process.stderr:
                log.append(line)
                if re.search(STORAGE_BACK, line):
                    break
        assert 0 == served.stop(signal.SIGTERM)
        log += served.process.stderr

    assert 2 == len(re.findall(STORAGE_BACK, "".join(log)))


def test_an_idle_node_logs_that_it_receives_messages_again(tmp_path: Path):
    with RedisServer(tmp_path) as redis, server_process("--data", redis.url()) as served:
        assert served.process.stderr is not None
        redis.kill()
        assert any(DISCONNECTED in line for line in served.process.stderr)
        redis.start()
        assert any(RECONNECTED in line for line in served.process.stderr)
        assert 0 == served.stop(signal.SIGTERM)
