"""The contract on SQLite, in memory and in a file."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from emulator.engines import open_engine
from engines.contract import EngineContract
from engines.shorthand import Open


class TestMemory(EngineContract):
    @pytest.fixture
    def open(self) -> Open:
        return partial(open_engine, "sqlite://")


class TestFile(EngineContract):
    @pytest.fixture
    def open(self, tmp_path: Path) -> Open:
        return partial(open_engine, f"sqlite://{tmp_path}/data.db")


@pytest.mark.parametrize(
    ("url", "location", "is_file"),
    [
        ("sqlite://", "memory", False),
        ("sqlite:////srv/data.db?synchronous=full", "/srv/data.db", True),
        ("sqlite:///./data.db", "./data.db", True),
    ],
)
def test_an_engine_on_sqlite_describes_itself(url: str, location: str, is_file: bool) -> None:
    engine = open_engine(url, namespace="main")

    assert ("sqlite", location, is_file, is_file) == (
        engine.name, engine.location, engine.survives_restart, engine.is_shared,
    )  # fmt: skip
