"""A service on a file is killed under load: every acknowledged write is there once."""

from __future__ import annotations

from pathlib import Path

import pytest

from faults.crowd import ACKNOWLEDGED, Crowd
from faults.rounds import ROUNDS
from support.process import server_process

pytestmark = pytest.mark.slow

ENOUGH = 150
"""Acknowledged writes before each kill."""


def test_killing_the_service_loses_no_acknowledged_write(tmp_path: Path):
    data = f"sqlite:///{tmp_path}/data.db"
    crowd = Crowd()
    with server_process("--data", data) as served:
        crowd.prepare(served)
    for _ in range(ROUNDS):
        with server_process("--data", data) as served, crowd.writing(served):
            crowd.wait_for(ACKNOWLEDGED, ENOUGH)
            served.process.kill()

    with server_process("--data", data) as served:
        account = crowd.account(served).show(f"killed {ROUNDS} times")

    assert account.faultless, account
    assert account.found >= ROUNDS * ENOUGH
