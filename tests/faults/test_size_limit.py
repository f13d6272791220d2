"""The files of the service may not grow further (`ulimit -f`)."""

from __future__ import annotations

from pathlib import Path

import pytest

from faults.crowd import ACKNOWLEDGED, REFUSED, Crowd
from support.process import server_process

LIMIT = 3 << 20
"""Bytes of a file."""


@pytest.mark.slow
def test_ready_returns_503_and_names_the_limit_while_files_cannot_grow(tmp_path: Path) -> None:
    file, crowd = tmp_path / "data.db", Crowd()
    with server_process("--data", f"sqlite://{file}", under=["prlimit", f"--fsize={LIMIT}", "--"]) as served:
        crowd.prepare(served)
        with crowd.writing(served):
            crowd.wait_for(ACKNOWLEDGED, 100)
            crowd.wait_for(REFUSED, 50)
            assert 503 == served._http.get("/_emulator/ready").status_code
        served.process.terminate()
        _, log = served.process.communicate(timeout=10)
    assert f"this process may write {LIMIT} " in log
