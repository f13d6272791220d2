"""Programs that documents and examples use."""

from __future__ import annotations

from pathlib import Path

import pytest

from support import preloaded


@pytest.fixture(scope="session")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with an `extcli` that starts fast."""
    folder = tmp_path_factory.mktemp("bin")
    preloaded.put_program(folder)
    return folder
