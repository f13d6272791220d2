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


@pytest.mark.slow
class TestFile(EngineContract):
    @pytest.fixture
    def open(self, tmp_path: Path) -> Open:
        return partial(open_engine, f"sqlite://{tmp_path}/data.db")


def test_no_test_of_the_contract_hides_another() -> None:
    names = [name for part in EngineContract.__bases__ for name in vars(part) if name.startswith("test_")]

    assert len(names) == len(set(names))
