"""The whole REST surface on each engine, compared with a model of the specification."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from engines.redis_server import RedisServer
from surface.contract import SurfaceContract


class TestInMemory(SurfaceContract):
    @pytest.fixture
    def data(self) -> str:
        return "sqlite://"


@pytest.mark.long
class TestInAFile(SurfaceContract):
    @pytest.fixture
    def data(self, tmp_path: Path) -> str:
        return f"sqlite:///{tmp_path}/surface.db"


@pytest.mark.long
class TestOnRedis(SurfaceContract):
    @pytest.fixture
    def data(self, tmp_path: Path) -> Iterator[str]:
        with RedisServer(tmp_path) as server:
            yield server.url()


@pytest.mark.long
class TestOnTwoNodes(TestOnRedis):
    size = 2
