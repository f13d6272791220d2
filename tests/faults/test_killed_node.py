"""A service on a file is killed or stopped under load: every acknowledged write is there once."""

from __future__ import annotations

import signal
import time
from pathlib import Path

import pytest

from faults.crowd import ACKNOWLEDGED, Crowd
from faults.rounds import ROUNDS
from support.process import STOP_TIMEOUT, server_process

pytestmark = pytest.mark.slow

ENOUGH = 150
"""Acknowledged writes before each end."""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM], ids=lambda each: each.name)
def test_the_end_of_a_service_loses_no_acknowledged_write(tmp_path: Path, number: signal.Signals):
    data, slowest = f"sqlite:///{tmp_path}/data.db", 0.0
    crowd = Crowd()
    with server_process("--data", data) as served:
        crowd.prepare(served)
    for _ in range(ROUNDS):
        with server_process("--data", data) as served, crowd.writing(served):
            crowd.wait_for(ACKNOWLEDGED, ENOUGH)
            started = time.monotonic()
            assert served.stop(number) == (0 if number == signal.SIGTERM else -number)
            slowest = max(slowest, time.monotonic() - started)
    with server_process("--data", data) as served:
        account = crowd.account(served).show(f"{ROUNDS} times {number.name}, within {slowest * 1_000:.0f} ms")

    assert account.faultless, account
    assert account.found >= ROUNDS * ENOUGH
    assert slowest < STOP_TIMEOUT
