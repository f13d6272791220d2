"""A service is told to stop under load: it ends in order and in time, and whatever was acknowledged is there."""

from __future__ import annotations

import signal
import time
from pathlib import Path

import pytest

from faults.crowd import ACKNOWLEDGED, Crowd
from faults.rounds import ROUNDS
from support.process import STOP_TIMEOUT, server_process

ENOUGH = 150


@pytest.mark.parametrize("workers", [1, 2])
def test_a_service_that_is_stopped_under_load_ends_in_order_and_loses_nothing_acknowledged(
    tmp_path: Path, workers: int
):
    data = f"sqlite:///{tmp_path}/data.db"
    crowd = Crowd()
    with server_process("--data", data) as served:
        crowd.prepare(served)
    for _ in range(ROUNDS):
        with server_process("--data", data, "--workers", str(workers)) as served, crowd.writing(served):
            crowd.wait_for(ACKNOWLEDGED, ENOUGH)
            began = time.monotonic()
            assert 0 == served.stop(signal.SIGTERM)
            took = time.monotonic() - began

    with server_process("--data", data) as served:
        fault = f"stopped {ROUNDS} times, {workers} process(es), the last time within {took * 1_000:.0f} ms"
        account = crowd.account(served).shown(fault)

    assert account.faultless, account
    assert took < STOP_TIMEOUT
