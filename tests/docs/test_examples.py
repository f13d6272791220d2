"""The example script runs."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parent.parent.parent / "examples"


@pytest.mark.long
def test_a_poll_night_reads_back_everything_after_a_kill(tmp_path: Path, programs: Path):
    path = f"{programs}{os.pathsep}{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"

    result = subprocess.run(
        [EXAMPLES / "poll_night.sh"],
        cwd=tmp_path,
        env={"PATH": path, "HOME": "/nonexistent", "LC_ALL": "C.UTF-8"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )

    assert (0, True) == (result.returncode, "the votes are identical" in result.stdout), result.stderr
    assert "CRITICAL" not in result.stderr  # the service has ended before its data is removed
    assert '{"round":2,"boss":"Dragon","scores":{"red":7}}' in result.stdout.splitlines()
