"""Programs that documents and examples use, and the modules of the benchmarks."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from blocks import ROOT

from support import preloaded


@pytest.fixture(scope="session")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with an `extcli` that starts fast."""
    folder = tmp_path_factory.mktemp("bin")
    preloaded.put_program(folder)
    return folder


def _module(name: str) -> Any:
    """Return a fixture: this module, which imports its neighbours by their names alone."""

    @pytest.fixture(name=name)
    def imported() -> Iterator[Any]:
        sys.path[:0] = [str(ROOT / "benchmarks"), str(ROOT / "tests" / "endurance")]
        yield importlib.import_module(name)
        del sys.path[:2]

    return imported


guard, load, page, plot = map(_module, ("guard", "load", "page", "plot"))
report, run, scaling, soak, trace = map(_module, ("report", "run", "scaling", "soak", "trace"))
