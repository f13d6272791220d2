"""A power cut: the unsynced end of the WAL is missing or torn, and an earlier consistent state remains.

The test simulates the disk: it takes the files of a killed service and cuts the WAL after the last sync, as a power cut
does if the disk honors syncs.
"""

from __future__ import annotations

import random
import shutil
from pathlib import Path

from emulator.core.settings import Settings
from faults.crowd import ACKNOWLEDGED, Crowd
from support.process import server_process
from support.service import live_server

ENOUGH = 300
FRAME = 24 + 1024
"""Bytes of a WAL frame: its header and a page."""
HEAD = 32
"""Bytes before the first frame."""


def frames_of(file: Path) -> tuple[int, int]:
    """Return how many WAL frames are synced for certain, and how many committed, from the WAL index."""
    index = file.with_name(f"{file.name}-shm").read_bytes()
    committed, copied, copying = (int.from_bytes(index[at : at + 4], "little") for at in (16, 96, 128))
    return max(copied, copying), committed


def test_after_a_power_cut_no_write_is_half_done(tmp_path: Path):
    file, crowd = tmp_path / "data.db", Crowd()
    with server_process("--data", f"sqlite://{file}") as served:
        crowd.prepare(served)
        with crowd.writing(served):
            crowd.wait_for(ACKNOWLEDGED, ENOUGH)
            served.process.kill()
    synced, committed = frames_of(file)

    for kept, tail in ((0.0, "missing"), (0.5, "torn")):
        copy = tmp_path / f"{kept}.db"
        shutil.copy(file, copy)
        wal = file.with_name("data.db-wal").read_bytes()
        cut = HEAD + FRAME * (synced + round((committed - synced) * kept)) + (FRAME // 2 if committed > synced else 0)
        noise = random.Random(cut).randbytes(len(wal) - cut) if tail == "torn" else b""
        copy.with_name(f"{copy.name}-wal").write_bytes(wal[:cut] + noise)
        with live_server(Settings(data=f"sqlite://{copy}")) as live:
            account = crowd.account(live).show(f"power cut, {committed - synced} pages not synced, {kept:.0%} kept")

        assert not account.wrong, account
        assert account.found
