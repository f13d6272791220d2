"""The power is cut: the end of the log, which nobody waited for, is missing or torn. What is left is a state of before.

Only the disk is played: the files are those of a killed service, and the log is cut where the disk had not been waited
for, which is all that a power cut does to a disk that keeps its word.
"""

from __future__ import annotations

import random
import shutil
from pathlib import Path

import pytest

from emulator.config.settings import Settings
from faults.crowd import ACKNOWLEDGED, Crowd
from support.process import server_process
from support.service import live_server

ENOUGH = 300
FRAME = 24 + 1024
"""Bytes of a page in the log, with its head."""
HEAD = 32
"""Bytes before the first."""


def frames_of(file: Path) -> tuple[int, int]:
    """How many pages of the log are on the disk for certain, and how many are committed, by its index."""
    index = file.with_name(f"{file.name}-shm").read_bytes()
    committed, copied, copying = (int.from_bytes(index[at : at + 4], "little") for at in (16, 96, 128))
    return max(copied, copying), committed


@pytest.mark.parametrize("tail", ["missing", "torn"])
def test_after_a_power_cut_all_is_as_it_was_a_moment_before_and_nothing_is_half_done(tmp_path: Path, tail: str):
    file, crowd = tmp_path / "data.db", Crowd()
    with server_process("--data", f"sqlite://{file}") as served:
        crowd.prepare(served)
        with crowd.writing(served):
            crowd.wait_for(ACKNOWLEDGED, ENOUGH)
            served.process.kill()
    safe, committed = frames_of(file)

    for share in (0.0, 0.5, 0.9):
        left = tmp_path / f"{share}.db"
        shutil.copy(file, left)
        log = file.with_name("data.db-wal").read_bytes()
        cut = HEAD + FRAME * (safe + round((committed - safe) * share)) + (FRAME // 2 if committed > safe else 0)
        noise = random.Random(cut).randbytes(len(log) - cut) if tail == "torn" else b""
        left.with_name(f"{left.name}-wal").write_bytes(log[:cut] + noise)
        with live_server(Settings(data=f"sqlite://{left}")) as live:
            account = crowd.account(live).shown(f"power cut, {committed - safe} pages not waited for, {share:.0%} kept")

        assert not account.wrong, account
        assert account.found
