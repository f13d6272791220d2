"""The disk cannot be written: a running service refuses writes, and a start fails."""

from __future__ import annotations

import resource
import signal
from pathlib import Path

import pytest

from faults.crowd import ACKNOWLEDGED, REFUSED, Crowd
from faults.rounds import ROUNDS
from faults.small_disk import SmallDisk
from support.process import server_process, wait_until
from support.service import CHANNEL

pytestmark = pytest.mark.long

ENOUGH = 100


def test_writes_are_refused_while_the_disk_fails(tmp_path: Path):
    """A file size limit of 0 bytes fails each write as a read-only disk would; open files prevent a remount."""
    crowd = Crowd()
    with server_process("--data", f"sqlite:///{tmp_path}/data.db") as served:
        crowd.prepare(served)
        reader = served.client("backend", channel=CHANNEL)
        with crowd.writing(served):
            for _ in range(ROUNDS):
                crowd.wait_for(ACKNOWLEDGED, ENOUGH)
                resource.prlimit(served.process.pid, resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))
                crowd.wait_for(REFUSED, ENOUGH)
                assert {200} == {reader.get(path).status_code for path in ["vote", "vote_logs", "accumulate"] * 20}
                wait_until(lambda: served._http.get("/_emulator/ready").status_code == 503)
                resource.prlimit(
                    served.process.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY)
                )
                back = crowd.wait_for(ACKNOWLEDGED)
            crowd.wait_for(ACKNOWLEDGED, ENOUGH)
        account = crowd.account(served).show(f"disk not writable {ROUNDS} times", back)
        assert 200 == served._http.get("/_emulator/ready").status_code
        assert 0 == served.stop(signal.SIGTERM)

    assert account.faultless, account
    assert 0 == account.unknown


def test_a_start_on_a_read_only_disk_fails_with_one_line(tmp_path: Path):
    disk = SmallDisk(tmp_path / "disk", "32m", "ro")
    with server_process("--data", disk.data, under=disk.under) as served:
        _, error = served.process.communicate(timeout=10)

    assert 2 == served.process.returncode
    assert f"extcli serve: cannot open {tmp_path}/disk/data.db: {tmp_path}/disk is not writable\n" == error
