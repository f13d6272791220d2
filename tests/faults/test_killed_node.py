"""Processes on a file are killed under load: every acknowledged write is there once."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from faults.crowd import ACKNOWLEDGED, Crowd
from faults.rounds import ROUNDS
from support.process import server_process, unexpected_log_lines, wait_until, worker_pids

pytestmark = pytest.mark.long

ENOUGH = 150
"""Acknowledged writes before each kill."""


@pytest.mark.parametrize("workers", [1, 2])
def test_killing_the_whole_service_loses_no_acknowledged_write(tmp_path: Path, workers: int):
    data = f"sqlite:///{tmp_path}/data.db"
    crowd = Crowd()
    with server_process("--data", data) as served:
        crowd.prepare(served)
    for _ in range(ROUNDS):
        with server_process("--data", data, "--workers", str(workers)) as served, crowd.writing(served):
            crowd.wait_for(ACKNOWLEDGED, ENOUGH)
            for victim in [served.process.pid, *worker_pids(served)]:
                os.kill(victim, signal.SIGKILL)

    with server_process("--data", data) as served:
        account = crowd.account(served).show(f"killed {ROUNDS} times, {workers} process(es)")

    assert account.faultless, account
    assert account.found >= ROUNDS * ENOUGH


def test_killing_one_of_two_workers_loses_no_acknowledged_write(tmp_path: Path):
    """The victim may be a replacement that is still starting."""
    crowd = Crowd()
    with server_process("--data", f"sqlite:///{tmp_path}/data.db", "--workers", "2") as served:
        crowd.prepare(served)
        with crowd.writing(served):
            for _ in range(ROUNDS):
                crowd.wait_for(ACKNOWLEDGED, ENOUGH)
                os.kill(max(worker_pids(served)), signal.SIGKILL)
                back = crowd.wait_for(ACKNOWLEDGED)
            crowd.wait_for(ACKNOWLEDGED, ENOUGH)
        account = crowd.account(served).show(f"one of two workers killed {ROUNDS} times", back)

    assert account.faultless, account
    assert account.refused == 0


def test_a_worker_killed_before_it_serves_is_replaced(tmp_path: Path):
    options = ("--data", f"sqlite:///{tmp_path}/data.db", "--workers", "2", "--log-level", "warning")
    with server_process(*options) as served:
        log = served.process.stderr
        assert log is not None
        first = worker_pids(served)
        victim = first.pop()
        os.kill(victim, signal.SIGKILL)
        assert f"worker {victim} ended with -9 and is replaced" in log.readline()
        starting = wait_until(lambda: worker_pids(served) - first - {victim}).pop()
        os.kill(starting, signal.SIGKILL)
        assert f"its replacement {starting} ended with -9 before it served" in log.readline()
        wait_until(lambda: len(worker_pids(served)) == 2)

        assert 200 == served.client("viewer", user="1", channel="777").get("vote").status_code
        assert 0 == served.stop(signal.SIGTERM)


def test_a_stop_does_not_wait_for_a_replacement_that_is_starting(tmp_path: Path):
    with server_process("--data", f"sqlite:///{tmp_path}/data.db", "--workers", "2") as served:
        first = worker_pids(served)
        os.kill(max(first), signal.SIGKILL)
        starting = wait_until(lambda: worker_pids(served) - first).pop()
        wait_until(lambda: _has(starting, "SigCgt", signal.SIGTERM))
        os.kill(starting, signal.SIGSTOP)  # so that it does not serve before the stop
        try:
            served.process.send_signal(signal.SIGTERM)
            wait_until(lambda: _has(starting, "ShdPnd", signal.SIGTERM))
        finally:
            os.kill(starting, signal.SIGCONT)
        assert 0 == served.stop()
        assert ["is replaced"] == [line.strip()[-11:] for line in unexpected_log_lines(served)]


def test_all_workers_stop_if_no_replacement_starts(tmp_path: Path):
    with server_process("--data", f"sqlite:///{tmp_path}/data.db", "--workers", "2") as served:
        (tmp_path / "data.db-damaged").touch()  # makes every start fail
        os.kill(worker_pids(served).pop(), signal.SIGKILL)
        _, log = served.process.communicate(timeout=30)

    assert 2 == served.process.returncode
    assert "no replacement started in 5 tries; stopping" in log
    assert 5 == log.count("it is corrupt (found by the process that has it open)")


def _has(pid: int, field: str, number: signal.Signals) -> bool:
    """Whether a process has a signal in this set: `SigCgt`, those it handles; `ShdPnd`, those it has yet to take."""
    status = Path(f"/proc/{pid}/status").read_text()
    (signals,) = (line.split()[1] for line in status.splitlines() if line.startswith(field))
    return bool(int(signals, 16) >> (number - 1) & 1)
