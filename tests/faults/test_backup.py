"""A backup by `extcli data backup` under load is complete, and a service can start from it."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from faults.crowd import ACKNOWLEDGED, Crowd
from support.process import server_process
from support.program import PROGRAM

ENOUGH = 80


@pytest.mark.long
def test_a_backup_has_every_write_acknowledged_before_it_began(tmp_path: Path):
    crowd, file, copy = Crowd(), tmp_path / "data.db", tmp_path / "copy.db"
    with server_process("--data", f"sqlite://{file}") as served:
        crowd.prepare(served)
        with crowd.writing(served):
            crowd.wait_for(ACKNOWLEDGED, ENOUGH)
            before = crowd.named(ACKNOWLEDGED)
            subprocess.run([PROGRAM, "data", "backup", copy, "--data", f"sqlite://{file}"], check=True)
            crowd.wait_for(ACKNOWLEDGED, ENOUGH)
        assert crowd.account(served).faultless

    with server_process("--data", f"sqlite://{copy}") as served:
        account = crowd.account(served)
    missing = {write.removesuffix(" lost") for write in account.lost}

    assert not account.wrong, account
    assert not before & missing
