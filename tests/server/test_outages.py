"""Each process logs the end of an outage once, even when idle."""

from __future__ import annotations

import re
import signal
from pathlib import Path

import pytest

from engines.redis_server import RedisServer
from support.process import server_process
from support.service import CHANNEL, Client

FAILED, STORAGE_BACK = "storage failed in", r"INFO emulator(?: \[.+\])?: storage answers again after \d+\.\d s\n"
DISCONNECTED = "cannot receive messages from other processes: "
RECONNECTED = "INFO emulator.engines: receiving messages from other processes again"


@pytest.mark.parametrize("workers", [pytest.param("1", marks=pytest.mark.long), "2"])
def test_an_idle_node_notices_that_storage_is_back(tmp_path: Path, workers: str):
    with RedisServer(tmp_path) as redis, server_process("--data", redis.url(), "--workers", workers) as served:
        assert served.process.stderr is not None
        redis.kill()
        for _ in range(3):
            assert 503 == served.client("viewer", user="1", channel=CHANNEL).get("vote").status_code
        redis.start()
        for line in served.process.stderr:
            if re.search(STORAGE_BACK, line):
                break
        if workers == "1":
            with Client(base_url=served.url) as client:
                assert "emulator_storage_reachable 1.0" in client.get("/_emulator/metrics").text

        assert 0 == served.stop(signal.SIGTERM)


def test_the_end_of_each_outage_is_logged_once(tmp_path: Path):
    with RedisServer(tmp_path) as redis, server_process("--data", redis.url()) as served:
        viewer = served.client("viewer", user="1", channel=CHANNEL)
        for _ in range(2):
            redis.kill()
            assert [503] * 5 == [viewer.get("vote").status_code for _ in range(5)]
            redis.start()
            with Client(base_url=served.url) as client:
                while client.get("/_emulator/ready").status_code != 200:
                    pass
        assert 0 == served.stop(signal.SIGTERM)
        assert served.process.stderr is not None
        log = served.process.stderr.read()

    assert 2 == len(re.findall(STORAGE_BACK, log))


def test_an_idle_node_logs_that_it_receives_messages_again(tmp_path: Path):
    with RedisServer(tmp_path) as redis, server_process("--data", redis.url()) as served:
        assert served.process.stderr is not None
        redis.kill()
        assert any(DISCONNECTED in line for line in served.process.stderr)
        redis.start()
        assert any(RECONNECTED in line for line in served.process.stderr)
        assert 0 == served.stop(signal.SIGTERM)
