"""The contract on Redis, and what only several connections to a server can show."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import count

import pytest

from emulator.engines import open_engine
from engines.a_redis import RedisServer
from engines.contract import EngineContract
from engines.vocabulary import Open

DATABASES = count()


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    server = RedisServer(tmp_path_factory.mktemp("redis"))
    server.start()
    yield server
    server.kill()


@pytest.fixture
def url(server: RedisServer) -> str:
    """Of a database that no other test uses."""
    return server.url(next(DATABASES))


class TestRedis(EngineContract):
    @pytest.fixture
    def open(self, url: str) -> Open:
        return partial(open_engine, url)
