"""The engines of the services that are compared with the model."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from engines.redis_server import RedisServer


@pytest.fixture(
    params=["memory", pytest.param("file", marks=pytest.mark.long), pytest.param("redis", marks=pytest.mark.long)]
)
def data(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The URL of an engine without data."""
    if request.param == "redis":
        with RedisServer(tmp_path) as server:
            yield server.url()
    else:
        yield "sqlite://" if request.param == "memory" else f"sqlite:///{tmp_path}/surface.db"
