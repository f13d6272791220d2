"""Programs that documents and examples use."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder with an `extcli` that starts fast (`preloaded_cli.py`)."""
    folder = tmp_path_factory.mktemp("bin")
    command = [sys.executable, Path(__file__).with_name("preloaded_cli.py"), folder]
    server = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
    assert server.stdout is not None
    assert server.stdout.readline() == "ready\n"
    yield folder
    server.kill()
    server.communicate()
