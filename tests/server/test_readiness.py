"""`ready` fails with the storage, and recovers with it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import redis

from emulator.core.config.settings import Settings
from engines.redis_server import RedisServer
from support.service import Client, LiveServer, live_server


@contextmanager
def service_on_redis(folder: Path) -> Iterator[tuple[LiveServer, redis.Redis]]:
    with (
        RedisServer(folder) as server,
        live_server(Settings(data=server.url())) as live,
        redis.Redis(port=server.port) as admin,
    ):
        yield live, admin


@pytest.mark.slow
def test_ready_fails_at_once_when_redis_does_and_recovers_with_it(tmp_path: Path):
    with service_on_redis(tmp_path) as (live, admin), Client(base_url=live.url) as client:
        answers = [client.get("/_emulator/ready")]
        admin.replicaof("127.0.0.1", 1)  # which takes no writes
        answers.append(client.get("/_emulator/ready"))
        admin.replicaof("NO", "ONE")
        answers.append(client.get("/_emulator/ready"))

    assert [200, 503, 200] == [each.status_code for each in answers]
