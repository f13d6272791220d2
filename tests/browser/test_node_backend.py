"""A Node.js backend with fixed addresses reaches the service with the lines of `extcli connect node`."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from support.browser import run_script
from support.program import PROGRAM
from support.service import LiveServer


@pytest.mark.slow
@pytest.mark.parametrize("place", ["", "/_ns/node"])
def test_an_unchanged_backend_and_the_published_sdk_reach_the_service(live: LiveServer, tmp_path: Path, place: str):
    command = [PROGRAM, "connect", "node", "--url", f"{live.url}{place}"]
    preload = tmp_path / "emulator.cjs"
    preload.write_text(subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout)

    result = run_script("node_backend.js", live.url, preload=preload)

    assert {
        "written": {},
        "vote": 2,
        "state": {"round": 4},
        "stateByUrl": {"round": 4},
        "ranked": {"accepted": True},
        "heard": {"text": "hi"},
        "linked": "777",
        "elsewhere": ["live", "live"],
    } == result
