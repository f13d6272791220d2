"""If `snapshot save` or a stop with `--export-on-exit` is killed, the file is the old one or the new one, whole."""

from __future__ import annotations

import json
import os
import random
import signal
from pathlib import Path

import httpx
import pytest

from support import preloaded
from support.process import ServerProcess, server_process, wait_until

ROUNDS = int(os.environ.get("ROUNDS", "6"))
"""How often to kill."""
VOTERS = 3_000
RANDOM = random.Random(9)
pytestmark = pytest.mark.long


def snapshot_of(votes: int) -> str:
    """Return a snapshot at a frozen clock with a poll of this many votes."""
    key = '"key":["poll","my-extension","default","777"]'
    entries = [
        f'{{"type":"entry",{key},"voter":"U{number}","choice":"1","cast_at":{1_000 + number}}}'
        for number in range(votes)
    ]
    records = [
        f'{{"type":"ballot",{key},"expires_at":9000000000000}}',
        f'{{"type":"choice",{key},"choice":"1"}}',
        *entries,
    ]
    header = {
        "extcli_snapshot": 1,
        "version": "",
        "environment": "sandbox",
        "clock": {"frozen_at": 5_000_000},
        "keys": False,
        "counts": {"ballot": 1, "choice": 1, "entry": votes},
    }
    first = json.dumps(header, separators=(",", ":"))[:-1] + ',"records":[\n'
    return first + ",\n".join(records) + "\n]}\n"


def content_of(served: ServerProcess) -> bytes:
    return httpx.get(f"{served.url}/_emulator/snapshot", timeout=60).raise_for_status().content


def vote(served: ServerProcess, number: int) -> None:
    """Change the vote of the first viewer."""
    served.client("viewer", opaque="U0", channel="777").post("vote", json={"value": number}).raise_for_status()


def written_beside(path: Path) -> int:
    """Return how many bytes were written to the file that is to replace this one; -1 if there is none."""
    sizes = [_size(each) for each in path.parent.glob(f".{path.name}-*")]
    return max(sizes, default=-1)


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return -1


def kill_while_writing(process: preloaded.Process, path: Path, size: int) -> None:
    """Kill the process when a random part of the new file is written; in a third of the cases, let it end."""
    moment = RANDOM.randrange(-1, size * 3 // 2)
    wait_until(lambda: written_beside(path) > moment or process.poll() is not None)
    process.kill()
    process.wait(20)
    for each in path.parent.glob(f".{path.name}-*"):
        each.unlink()


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "source.json"
    path.write_text(snapshot_of(VOTERS))
    return path


@pytest.mark.long
def test_a_killed_export_leaves_the_old_file_or_the_new_one(source: Path, tmp_path: Path):
    path = tmp_path / "data.json"
    old = source.read_bytes()
    path.write_bytes(old)
    for number in range(ROUNDS):
        with server_process("--import", str(source), "--export-on-exit", str(path)) as served:
            vote(served, 3 + number)
            new = content_of(served)
            served.process.send_signal(signal.SIGTERM)
            kill_while_writing(served.process, path, len(new))
        left = path.read_bytes()

        assert left in (old, new)
        old = left


def test_a_stop_during_the_import_is_clean_and_exports_nothing(tmp_path: Path):
    source, target, data = (tmp_path / name for name in ("source.json", "data.json", "data.db"))
    source.write_text(snapshot_of(10 * VOTERS))
    target.write_text("old")
    args = ["serve", "--port", "0", "--data", f"sqlite:///{data}"]
    with preloaded.start([*args, "--import", str(source), "--export-on-exit", str(target)], os.environ) as process:
        wait_until(data.exists)
        process.send_signal(signal.SIGTERM)
        assert 0 == process.wait(20)
        assert "" == process.stdout.read()
        assert "stopped before the service was ready" in process.stderr.read()

    assert "old" == target.read_text()
