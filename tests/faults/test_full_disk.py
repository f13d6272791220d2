"""The disk is full: writes are refused, reads continue, and freeing space ends it."""

from __future__ import annotations

import signal
from itertools import count
from pathlib import Path

import pytest

from faults.crowd import ACKNOWLEDGED, REFUSED, Crowd
from faults.rounds import ROUNDS
from faults.small_disk import SmallDisk
from support.process import ServerProcess, server_process, wait_until
from support.service import CHANNEL

pytestmark = pytest.mark.long

ENOUGH = 100


def test_on_a_full_disk_writes_are_refused_and_reads_continue(tmp_path: Path):
    disk, crowd = SmallDisk(tmp_path / "disk", "32m"), Crowd()
    with server_process("--data", disk.data, under=disk.under) as served:
        crowd.prepare(served)
        reader = served.client("backend", channel=CHANNEL)
        with crowd.writing(served):
            for _ in range(ROUNDS):
                crowd.wait_for(ACKNOWLEDGED, ENOUGH)
                disk.fill(served)
                crowd.wait_for(REFUSED, ENOUGH)
                assert {200} == {reader.get(path).status_code for path in ["vote", "vote_logs", "accumulate"] * 20}
                disk.empty(served)
                back = crowd.wait_for(ACKNOWLEDGED)
            crowd.wait_for(ACKNOWLEDGED, ENOUGH)
        account = crowd.account(served).show(f"disk full {ROUNDS} times", back)
        assert 0 == served.stop(signal.SIGTERM)

    assert account.faultless, account
    assert 0 == account.unknown


def test_on_a_full_disk_the_service_is_not_ready_before_any_write_fails(tmp_path: Path):
    disk = SmallDisk(tmp_path / "disk", "32m")
    with server_process("--data", disk.data, under=disk.under) as served:
        states = [ready(served)]
        for change in (disk.fill, disk.empty):
            change(served)
            states.append(ready(served))

    assert [200, 503, 200] == states


def test_after_a_refused_vote_the_service_is_not_ready_until_there_is_space(tmp_path: Path):
    disk = SmallDisk(tmp_path / "disk", "32m")
    with server_process("--data", disk.data, under=disk.under) as served:
        voters = count()
        disk.fill(served)
        wait_until(lambda: vote(served, next(voters)) == 503)
        seen = [ready(served) for _ in range(20) if vote(served, next(voters))]
        disk.empty(served)

        assert [503] * 20 == seen
        assert (200, 200) == (ready(served), vote(served, next(voters)))


def test_on_a_full_disk_users_who_are_new_can_read(tmp_path: Path):
    """Ruling A3: a read does not enter the reader into the directory."""
    disk = SmallDisk(tmp_path / "disk", "32m")
    with server_process("--data", disk.data, under=disk.under) as served:
        voters = count(10)
        disk.fill(served)
        wait_until(lambda: vote(served, next(voters)) == 503)
        readers = [served.client("viewer", user="2", channel=CHANNEL)]
        readers.append(served.client("viewer", user="3", opaque="UTHREE", channel=CHANNEL))
        readers.append(served.client("viewer", opaque="AFOUR", channel=CHANNEL))

        answers = [
            reader.get(path) for reader in readers for path in ("vote", "viewer_state", "user_info", "all_config")
        ]

    assert {200} == {answer.status_code for answer in answers}


def test_a_wal_that_fills_the_disk_during_a_long_read_loses_nothing(tmp_path: Path):
    disk, crowd = SmallDisk(tmp_path / "disk", "20m"), Crowd()
    with server_process("--data", disk.data, under=disk.under) as served:
        crowd.prepare(served)
        disk.fill(served, 6 << 20)
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


def vote(served: ServerProcess, user: int) -> int:
    viewer = served.client("viewer", user=str(user), channel=CHANNEL)
    return viewer.post("vote", json={"value": 1}).status_code


def ready(served: ServerProcess) -> int:
    return served._http.get("/_emulator/ready").status_code
