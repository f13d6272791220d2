"""Many tests in parallel see only their own data, and leave no namespace behind."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.plugin_runs import ROOT, declare_plugin

pytestmark = pytest.mark.long


@pytest.fixture
def benchmark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The benchmark, as a module."""
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    # Declares the plugin to this process and to the runs of pytest.
    site = str(declare_plugin(tmp_path))
    monkeypatch.syspath_prepend(site)
    monkeypatch.setenv("PYTHONPATH", site)
    yield importlib.import_module("pytest_isolation")
    sys.modules.pop("pytest_isolation", None)


@pytest.mark.parametrize(
    "shared", [pytest.param(True, marks=pytest.mark.long), False], ids=["one service", "a service for each worker"]
)
def test_parallel_tests_see_only_their_own_data(benchmark: Any, shared: bool):
    result = benchmark.measure(120, 3, shared=shared)

    assert 0 == result.exit_code, result.output
    assert "120 passed" in result.output
    assert 117 == len(result.isolation)
    assert [] == result.left
