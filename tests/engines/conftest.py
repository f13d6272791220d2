"""A place for a file, and a Redis database for each test.

Registers the contract's modules, which are not named `test_…`, for assertions.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest
import redis

from emulator.storage.redis import client, relay
from engines.redis_server import RedisServer, add_users, url_of_service

DATABASES = count()

pytest.register_assert_rewrite(*(f"engines.{path.stem}" for path in Path(__file__).parent.glob("contract_*.py")))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """The place of a database file that does not exist yet."""
    return tmp_path / "data.db"


@pytest.fixture(scope="session")
def redis_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    """A server with the users that the documents advise, and the default user, who may do all."""
    with RedisServer(tmp_path_factory.mktemp("redis")) as server:
        add_users(server)
        yield server


@pytest.fixture
def unhurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give Redis a minute for each reply: this process may stall on a busy machine for the two seconds of a service."""
    monkeypatch.setattr(client, "TIMEOUT", 60.0)
    monkeypatch.setattr(relay, "TIMEOUT", 60.0)
    monkeypatch.setitem(client._OPTIONS, "socket_connect_timeout", 60.0)


@pytest.fixture
def redis_url(redis_server: RedisServer, unhurried: None) -> str:
    """The URL of a database that no other test uses, as the user of the service."""
    return url_of_service(redis_server, next(DATABASES))


@pytest.fixture
def redis_database(redis_server: RedisServer, redis_url: str) -> Iterator[redis.Redis]:
    """A direct connection to the same database, as the default user."""
    with redis.Redis(port=redis_server.port, db=int(redis_url.rpartition("/")[2])) as database:
        yield database
