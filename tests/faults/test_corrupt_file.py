"""A page of the file is corrupt: a request that meets it gets 503, the others work, and `data verify` finds it."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from faults.crowd import ACKNOWLEDGED, Crowd
from faults.writes import Store
from support.process import ServerProcess, server_process
from support.program import PROGRAM
from support.service import CHANNEL

PAGE = 1024
"""Bytes."""
LEAF = b"\x0d"
"""The first byte of a page with rows of a table."""
ENOUGH = 200


def corrupt(file: Path) -> None:
    """Overwrite a page of viewer stores in the middle of a file that no service uses."""
    content = file.read_bytes()
    pages = [content[at : at + PAGE] for at in range(0, len(content), PAGE)]
    of_stores = [number for number, page in enumerate(pages) if page.startswith(LEAF) and b"filling" in page]
    with file.open("r+b") as opened:
        opened.seek(of_stores[len(of_stores) // 2] * PAGE)
        opened.write(b"\xaa" * PAGE)


def read_stores(served: ServerProcess) -> set[int]:
    """Read the stores of all users one by one; return the statuses."""
    users = (served.client("viewer", user=str(number), channel=CHANNEL) for number in range(ENOUGH))
    return {user.get("extension_viewer_state").status_code for user in users}


@pytest.mark.long
def test_a_corrupt_page_fails_the_requests_that_need_it_and_is_found(tmp_path: Path):
    file, crowd = tmp_path / "data.db", Crowd(Store())
    with server_process("--data", f"sqlite://{file}") as served:
        crowd.prepare(served)
        with crowd.writing(served):
            crowd.wait_for(ACKNOWLEDGED, ENOUGH)
        assert 0 == served.stop(15)
    corrupt(file)

    with server_process("--data", f"sqlite://{file}", "--log-level", "error") as served:
        assert {200, 503} == read_stores(served)
        voter = served.client("viewer", user="1", channel=CHANNEL)
        assert {200} == {voter.post("vote", json={"value": 1}).status_code, voter.get("vote").status_code}
        verified = subprocess.run([PROGRAM, "data", "verify", file], capture_output=True, text=True, check=False)
        served.process.terminate()
        _, log = served.process.communicate(timeout=5)

    assert "database disk image is malformed" in log
    assert 7 == verified.returncode
    assert f"{file} is damaged" in verified.stderr
