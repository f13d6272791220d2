"""The disk is full, or files may not grow (`ulimit -f`): writes are refused, reads continue, and space ends it."""

from __future__ import annotations

import resource
import signal
from pathlib import Path

import pytest

from faults.crowd import ACKNOWLEDGED, REFUSED, Crowd
from faults.rounds import ROUNDS
from faults.small_disk import SmallDisk
from support.process import ServerProcess, server_process, wait_until
from support.service import CHANNEL

pytestmark = pytest.mark.long

ENOUGH = 100
LIMIT = 3 << 20
"""Bytes of a file."""


def test_writes_are_refused_and_reads_continue(tmp_path: Path):
    """Ruling A3: a read does not enter the reader into the directory, so users who are new can read."""
    disk, crowd = SmallDisk(tmp_path / "disk", "32m"), Crowd()
    with server_process("--data", disk.data, under=disk.under) as served:
        disk.fill(served)
        assert 503 == ready(served), "before any write fails"
        disk.empty(served)
        assert 200 == ready(served)
        crowd.prepare(served)
        readers = [served.client("backend", channel=CHANNEL), served.client("viewer", user="new", channel=CHANNEL)]
        with crowd.writing(served):
            for _ in range(ROUNDS):
                crowd.wait_for(ACKNOWLEDGED, ENOUGH)
                disk.fill(served)
                crowd.wait_for(REFUSED, ENOUGH)
                assert {200} == {each.get("vote").status_code for each in readers * 30}
                wait_until(lambda: ready(served) == 503)
                disk.empty(served)
                back = crowd.wait_for(ACKNOWLEDGED)
            crowd.wait_for(ACKNOWLEDGED, ENOUGH)
        account = crowd.account(served).show(f"disk {tmp_path.name} {ROUNDS} times", back)
        assert 200 == ready(served)
        assert 0 == served.stop(signal.SIGTERM)

    assert account.faultless, account
    assert 0 == account.unknown


def test_a_wal_that_fills_the_disk_during_a_long_read_loses_nothing(tmp_path: Path):
    disk, crowd = SmallDisk(tmp_path / "disk", "20m"), Crowd()
    with server_process("--data", disk.data, under=disk.under) as served:
        crowd.prepare(served)
        disk.fill(served, 10 << 20)
        with crowd.writing(served):
            with disk.reading(served):
                crowd.wait_for(REFUSED, ENOUGH)
                wal = disk.wal_size(served)
            disk.empty(served)
            back = crowd.wait_for(ACKNOWLEDGED)
            crowd.wait_for(ACKNOWLEDGED, ENOUGH)
        account = crowd.account(served).show(f"disk full by a WAL of {wal >> 20} MiB", back)

    assert account.faultless, account
    assert 0 == account.unknown


def ready(served: ServerProcess) -> int:
    return served._http.get("/_emulator/ready").status_code


def test_a_start_on_a_read_only_disk_fails_with_one_line(tmp_path: Path):
    disk = SmallDisk(tmp_path / "disk", "32m", "ro")
    with server_process("--data", disk.data, under=disk.under) as served:
        _, error = served.process.communicate(timeout=10)

    assert 2 == served.process.returncode
    assert f"extcli serve: cannot open {tmp_path}/disk/data.db: {tmp_path}/disk is not writable\n" == error


def test_ready_returns_503_and_names_the_limit_while_files_cannot_grow(tmp_path: Path) -> None:
    file, crowd = tmp_path / "data.db", Crowd()
    with server_process("--data", f"sqlite://{file}", under=["prlimit", f"--fsize={LIMIT}:", "--"]) as served:
        crowd.prepare(served)
        with crowd.writing(served):
            crowd.wait_for(ACKNOWLEDGED, 100)
            crowd.wait_for(REFUSED, 50)
            assert 503 == ready(served)
            assert 200 == served.client("viewer", user="new", channel=CHANNEL).get("vote").status_code
            resource.prlimit(served.process.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY,) * 2)
            crowd.wait_for(ACKNOWLEDGED, 10)
        account = crowd.account(served)
        served.process.terminate()
        _, log = served.process.communicate(timeout=10)

    assert f"this process may write at most {LIMIT} " in log
    assert account.faultless, account
