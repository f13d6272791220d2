"""A part of the file is destroyed: from where it is met on nothing is answered out of it, and no start takes it."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from faults.crowd import ACKNOWLEDGED, Crowd
from faults.writes import KINDS, Store
from support.process import ServerProcess, server_process, wait_until
from support.service import CHANNEL

PAGE = 1024
"""Bytes."""
LEAF = b"\x0d"
"""With which a page begins that holds rows of a table."""
ENOUGH = 200
OTHERS = ("vote", "vote_logs", "accumulate", "rank?id=r0", "codes", "json_store?id=global0", "channel_state")


def write(file: Path, crowd: Crowd, *, suddenly: bool = False) -> None:
    """Have a crowd write to a file, which the service then leaves in order or suddenly."""
    with server_process("--data", f"sqlite://{file}") as served:
        crowd.prepare(served)
        with crowd.writing(served):
            crowd.wait_for(ACKNOWLEDGED, ENOUGH)
            if suddenly:
                served.process.kill()
        served.process.terminate()
        served.process.wait(5)


def write_apart(file: Path) -> None:
    """Have pages that hold stores of viewers only, and others that hold what `answers` asks for."""
    write(file, Crowd(Store()))
    write(file, Crowd(*(kind for kind in KINDS if not isinstance(kind, Store))))


def destroy(file: Path, *, share: float) -> None:
    """Write noise over a page with stores of viewers that has no later version in the log; 1.0 is the last one."""
    pages = file.read_bytes()
    log = file.with_name(f"{file.name}-wal")
    frames = log.read_bytes() if log.exists() else b""
    logged = {int.from_bytes(frames[at : at + 4]) - 1 for at in range(32, len(frames), 24 + PAGE)}
    held = sorted(
        number
        for number in set(range(len(pages) // PAGE)) - logged
        if (page := pages[number * PAGE : (number + 1) * PAGE]).startswith(LEAF) and b"filling" in page
    )
    chosen = held[round(share * (len(held) - 1))]
    with file.open("r+b") as opened:
        opened.seek(chosen * PAGE)
        opened.write(random.Random(chosen).randbytes(PAGE))


def refused_start(file: Path, workers: int = 1) -> str:
    """What a start says that is refused: one line."""
    with server_process("--data", f"sqlite://{file}", "--workers", str(workers)) as served:
        _, complaint = served.process.communicate(timeout=20)
    assert (2, 1) == (served.process.returncode, complaint.count("\n")), complaint
    return str(complaint)


def meet_damage(served: ServerProcess) -> int:
    """Read the stores of all viewers; returns how that was answered."""
    users = {"user_ids": ",".join(str(user) for user in range(ENOUGH))}
    admin = served.client("admin", user="9001", channel=CHANNEL)
    return admin.get("extension_viewer_state", params=users).status_code


def answers(served: ServerProcess) -> set[int]:
    """How calls are answered that have nothing to do with the stores of viewers, and whether the service is ready."""
    admin = served.client("admin", user="9001", channel=CHANNEL)
    others = {admin.get(path).status_code for path in OTHERS} | {admin.post("accumulate", json={}).status_code}
    return others | {served._http.get("/_emulator/ready").status_code}


@pytest.mark.parametrize("workers", [1, 2])
def test_a_start_after_a_sudden_end_looks_for_damage_and_is_refused_if_there_is_some(tmp_path: Path, workers: int):
    file, crowd = tmp_path / "data.db", Crowd()
    write(file, crowd)
    write(file, crowd, suddenly=True)
    destroy(file, share=1.0)

    complaint = refused_start(file, workers)

    assert complaint.startswith(f"extcli serve: cannot open {file}: it is corrupt (")
    assert f"sqlite3 {file} .recover" in complaint


def test_where_damage_is_met_nothing_is_answered_any_more_and_the_next_start_is_refused(tmp_path: Path):
    file = tmp_path / "data.db"
    write_apart(file)
    destroy(file, share=0.5)

    with server_process("--data", f"sqlite://{file}", "--log-level", "error") as served:
        assert {200} == answers(served)
        assert 503 == meet_damage(served)
        assert {503} == answers(served)
        assert 200 == served._http.get("/_emulator/live").status_code
        served.process.terminate()
        _, log = served.process.communicate(timeout=5)

    assert 1 == log.count(f"{file} is corrupt (database disk image is malformed) and no longer used")
    assert f"sqlite3 {file} .recover" in log
    assert f"cannot open {file}: it is corrupt" in refused_start(file)


def test_of_two_processes_neither_goes_on_once_one_has_met_damage(tmp_path: Path):
    file = tmp_path / "data.db"
    write_apart(file)
    destroy(file, share=0.5)

    with server_process("--data", f"sqlite://{file}") as one, server_process("--data", f"sqlite://{file}") as two:
        assert 503 == meet_damage(one)
        wait_until(lambda: answers(two) == {503})
