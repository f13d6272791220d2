"""A page of the file is corrupt: the service stops using the file, and no start accepts it."""

from __future__ import annotations

import random
from pathlib import Path

import httpx
import pytest

from faults.crowd import ACKNOWLEDGED, Crowd
from faults.writes import KINDS, Store, channel_of
from support.extension_files import write_extensions
from support.process import ServerProcess, server_process, wait_until
from support.service import CHANNEL

pytestmark = pytest.mark.long

PAGE = 1024
"""Bytes."""
LEAF = b"\x0d"
"""The first byte of a page with rows of a table."""
ENOUGH = 200
OTHERS = ("vote", "vote_logs", "accumulate", "rank?id=r0", "codes", "channel_state")


def write(file: Path, crowd: Crowd, *, crash: bool = False) -> None:
    """Have a crowd write to a file; then stop or crash the service."""
    with server_process("--data", f"sqlite://{file}") as served:
        crowd.prepare(served)
        with crowd.writing(served):
            crowd.wait_for(ACKNOWLEDGED, ENOUGH)
            if crash:
                served.process.kill()
        served.process.terminate()
        served.process.wait(5)


def write_separately(file: Path) -> None:
    """Write viewer stores and everything else to separate pages."""
    write(file, Crowd(Store()))
    write(file, Crowd(*(kind for kind in KINDS if not isinstance(kind, Store))))


def corrupt(file: Path, *, position: float) -> None:
    """Overwrite a page of viewer stores that is not in the WAL with noise; `position` 1.0 is the last such page."""
    pages = file.read_bytes()
    wal = file.with_name(f"{file.name}-wal")
    frames = wal.read_bytes() if wal.exists() else b""
    in_wal = {int.from_bytes(frames[at : at + 4]) - 1 for at in range(32, len(frames), 24 + PAGE)}
    pages_of_stores = sorted(
        number
        for number in set(range(len(pages) // PAGE)) - in_wal
        if (page := pages[number * PAGE : (number + 1) * PAGE]).startswith(LEAF) and b"filling" in page
    )
    chosen = pages_of_stores[round(position * (len(pages_of_stores) - 1))]
    with file.open("r+b") as opened:
        opened.seek(chosen * PAGE)
        opened.write(random.Random(chosen).randbytes(PAGE))


def failed_start(file: Path, workers: int = 1) -> str:
    """Start a service that must fail; return its one line of output."""
    with server_process("--data", f"sqlite://{file}", "--workers", str(workers)) as served:
        _, error = served.process.communicate(timeout=20)
    assert (2, 1) == (served.process.returncode, error.count("\n")), error
    return str(error)


def reading_fails(served: ServerProcess) -> bool:
    """Read all viewer stores. Return whether that returns 503, or the response breaks off at the corrupt page."""
    users = {"user_ids": ",".join(str(user) for user in range(ENOUGH))}
    admin = served.client("admin", user="9001", channel=CHANNEL)
    try:
        return admin.get("extension_viewer_state", params=users).status_code == 503
    except httpx.RemoteProtocolError:
        return True


def other_statuses(served: ServerProcess) -> set[int]:
    """Return the statuses of `ready` and of calls that do not read viewer stores."""
    admin = served.client("admin", user="9001", channel=CHANNEL)
    other_channel = served.client("admin", user="9001", channel=channel_of(0))
    others = [
        *(admin.get(path) for path in OTHERS),
        other_channel.get("json_store?id=store0"),
        admin.post("accumulate", json={}),
        served._http.get("/_emulator/ready"),
    ]
    return {answer.status_code for answer in others}


@pytest.mark.parametrize("workers", [pytest.param(1, marks=pytest.mark.long), 2])
def test_a_start_after_a_crash_fails_if_a_page_is_corrupt(tmp_path: Path, workers: int):
    file, crowd = tmp_path / "data.db", Crowd()
    write(file, crowd)
    write(file, crowd, crash=True)
    corrupt(file, position=1.0)

    error = failed_start(file, workers)

    assert error.startswith(f"extcli serve: cannot open {file}: it is corrupt (")
    assert f"extcli data restore BACKUP --data sqlite://{file}" in error


def test_a_service_that_meets_corruption_returns_503_and_cannot_restart(tmp_path: Path):
    file = tmp_path / "data.db"
    write_separately(file)
    corrupt(file, position=0.5)

    with server_process("--data", f"sqlite://{file}", "--log-level", "error") as served:
        assert {200} == other_statuses(served)
        assert reading_fails(served)
        assert {503} == other_statuses(served)
        assert 200 == served._http.get("/_emulator/live").status_code
        served.process.terminate()
        _, log = served.process.communicate(timeout=5)

    assert 1 == log.count(f"{file} is corrupt (database disk image is malformed) and no longer used")
    assert f"extcli data restore BACKUP --data sqlite://{file}" in log
    assert f"cannot open {file}: it is corrupt" in failed_start(file)


def test_every_process_on_a_file_returns_503_once_one_meets_corruption(tmp_path: Path):
    file = tmp_path / "data.db"
    write_separately(file)
    corrupt(file, position=0.5)

    production = ("--production", "--extensions", write_extensions(tmp_path))
    with (
        server_process("--data", f"sqlite://{file}") as one,
        server_process("--data", f"sqlite://{file}", *production) as two,
    ):
        assert reading_fails(one)
        wait_until(lambda: other_statuses(two) == {503})
