"""A place for a file, and a Redis database for each test.

Registers the contract's modules, which are not named `test_…`, for assertions.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest
import redis

from engines.redis_server import RedisServer

DATABASES = count()

pytest.register_assert_rewrite(*(f"engines.{path.stem}" for path in Path(__file__).parent.glob("contract_*.py")))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """The place of a database file that does not exist yet."""
    return tmp_path / "data.db"


@pytest.fixture(scope="session")
def redis_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    with RedisServer(tmp_path_factory.mktemp("redis")) as server:
        yield server


@pytest.fixture
def redis_url(redis_server: RedisServer) -> str:
    """The URL of a database that no other test uses."""
    return redis_server.url(next(DATABASES))


@pytest.fixture
def redis_database(redis_url: str) -> Iterator[redis.Redis]:
    """A direct connection to the same database."""
    with redis.Redis.from_url(redis_url) as database:
        yield database
