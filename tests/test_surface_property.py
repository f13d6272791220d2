"""The whole REST surface on the embedded engine, held against a plain model of the specification."""

from __future__ import annotations

from pathlib import Path

import pytest

from surface_contract import SurfaceContract


class TestInMemory(SurfaceContract):
    @pytest.fixture
    def data(self) -> str:
        return "sqlite://"


class TestInAFile(SurfaceContract):
    @pytest.fixture
    def data(self, tmp_path: Path) -> str:
        return f"sqlite:///{tmp_path}/surface.db"
