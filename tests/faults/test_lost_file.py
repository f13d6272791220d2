"""The file of a running service is deleted, moved or replaced: it is not ready and refuses writes, and says why."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from faults.crowd import ACKNOWLEDGED, REFUSED, Crowd
from support.examples import spread
from support.process import ServerProcess, server_process, wait_until

ENOUGH = 60


def delete(file: Path) -> None:
    for each in file.parent.glob(f"{file.name}*"):
        if not each.name.endswith("-lock"):  # as `rm data.db data.db-wal data.db-shm`
            each.unlink()


def move(file: Path) -> None:
    file.rename(file.with_name("away.db"))


def replace(file: Path) -> None:
    shutil.copy(file, file.with_name("other.db"))
    file.with_name("other.db").rename(file)


def delete_log(file: Path) -> None:
    file.with_name(f"{file.name}-wal").unlink()


def ready(served: ServerProcess) -> int:
    return served._http.get("/_emulator/ready").status_code


@pytest.mark.parametrize("lose", spread([move, delete, replace, delete_log], 4))
def test_a_service_whose_file_is_lost_refuses_writes_until_it_is_back(tmp_path: Path, lose: Callable[[Path], None]):
    file, crowd = tmp_path / "data.db", Crowd()
    with server_process("--data", f"sqlite://{file}") as served:
        crowd.prepare(served)
        with crowd.writing(served):
            crowd.wait_for(ACKNOWLEDGED, ENOUGH)
            lose(file)
            wait_until(lambda: ready(served) == 503)
            crowd.wait_for(REFUSED, ENOUGH)
        acknowledged = crowd.named(ACKNOWLEDGED)  # all answers from before are recorded
        with crowd.writing(served):
            crowd.wait_for(REFUSED, ENOUGH)
        assert acknowledged == crowd.named(ACKNOWLEDGED)
        if lose is move:
            file.with_name("away.db").rename(file)
            wait_until(lambda: ready(served) == 200)
            with crowd.writing(served):
                crowd.wait_for(ACKNOWLEDGED, ENOUGH)
            assert [] == crowd.account(served).lost
        served.process.terminate()
        _, log = served.process.communicate(timeout=60)

    lines = [line for line in log.splitlines() if "while the service was using it; writes fail" in line]
    assert 1 == len(lines), log
    assert f"extcli data restore BACKUP --data sqlite://{file}" in lines[0]
