"""SIGTERM under load: the service stops in time and loses no acknowledged write."""

from __future__ import annotations

import signal
import time
from pathlib import Path

from faults.crowd import ACKNOWLEDGED, Crowd
from faults.rounds import ROUNDS
from support.process import STOP_TIMEOUT, server_process

ENOUGH = 150


def test_a_stop_under_load_is_clean_and_loses_no_acknowledged_write(tmp_path: Path):
    data = f"sqlite:///{tmp_path}/data.db"
    crowd = Crowd()
    with server_process("--data", data) as served:
        crowd.prepare(served)
    for _ in range(ROUNDS):
        with server_process("--data", data) as served, crowd.writing(served):
            crowd.wait_for(ACKNOWLEDGED, ENOUGH)
            started = time.monotonic()
            assert 0 == served.stop(signal.SIGTERM)
            elapsed = time.monotonic() - started

    with server_process("--data", data) as served:
        fault = f"stopped {ROUNDS} times, the last one within {elapsed * 1_000:.0f} ms"
        account = crowd.account(served).show(fault)

    assert account.faultless, account
    assert elapsed < STOP_TIMEOUT
