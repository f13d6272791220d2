"""The file of a running service is deleted, moved or replaced: it stops writing, and saves what the open file holds."""

from __future__ import annotations

import shutil
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from faults.crowd import ACKNOWLEDGED, REFUSED, Crowd
from support.examples import spread
from support.process import server_process, wait_until

pytestmark = pytest.mark.long

ENOUGH = 150
BEFORE, AFTER = 100, 60


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


@pytest.mark.parametrize("lose", spread([delete, move, replace, delete_log], 4))
def test_writes_acknowledged_before_a_file_is_lost_are_rescued(tmp_path: Path, lose: Callable[[Path], None]) -> None:
    file, crowd = tmp_path / "data.db", Crowd()
    with server_process("--data", f"sqlite://{file}") as served:
        crowd.prepare(served)
        with crowd.writing(served):
            crowd.wait_for(ACKNOWLEDGED, ENOUGH)
            lose(file)
            crowd.wait_for(REFUSED, AFTER)
            acknowledged = crowd.named(ACKNOWLEDGED)
            crowd.wait_for(REFUSED, AFTER)
            assert acknowledged == crowd.named(ACKNOWLEDGED)
        assert 503 == served._http.get("/_emulator/ready").status_code
        rescued = file.with_name("data.db.rescued")
        wait_until(rescued.exists)
        served.process.terminate()
        _, log = served.process.communicate(timeout=10)
    lines = [line for line in log.splitlines() if "while the service was using it" in line]
    assert 1 == len([line for line in lines if f"All that was acknowledged is in {rescued}" in line]), log
    assert 0o600 == stat.S_IMODE(rescued.stat().st_mode)
    for command in (("verify", str(rescued)), ("restore", str(rescued), "--data", f"sqlite://{file}")):
        done = subprocess.run([sys.executable, "-m", "extcli", "data", *command], check=False, capture_output=True)
        assert 0 == done.returncode, done
    with server_process("--data", f"sqlite://{file}") as served:
        account = crowd.account(served).show(f"file lost by {lose.__name__}")
    assert [] == account.lost + account.wrong, account  # what was refused may be done in part, before the loss
