"""`extcli logs -f` during a crowd: each entry is printed once, or counted as lost."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from support.process import server_process, wait_until
from support.program import PROGRAM
from support.service import CHANNEL, RunningService
from support.waits import held

pytestmark = pytest.mark.slow
REQUESTS = 600
CONNECTIONS = 8


def crowd(service: RunningService) -> None:
    """Send `REQUESTS` requests over some connections, each with its own number."""

    def send(numbers: range) -> None:
        client = service.client("viewer", user="1", channel=CHANNEL)
        for number in numbers:
            client.get(f"vote?id={number}")

    with ThreadPoolExecutor(CONNECTIONS) as pool:
        list(pool.map(send, (range(first, REQUESTS, CONNECTIONS) for first in range(CONNECTIONS))))


def lines(file: Path) -> Iterator[dict[str, object]]:
    """Yield the complete lines that were printed so far."""
    for line in file.read_bytes().splitlines(keepends=True):
        if line.endswith(b"\n"):
            yield json.loads(line)


def end_of(file: Path) -> str:
    with file.open("rb") as lines:
        lines.seek(max(file.stat().st_size - 100_000, 0))
        return lines.read().decode(errors="replace")


@pytest.mark.parametrize("journal", [pytest.param("16MiB", marks=pytest.mark.long), "64KiB"])
def test_each_entry_is_followed_once_or_counted_as_lost(tmp_path: Path, journal: str):
    file = tmp_path / "followed.jsonl"
    with server_process("--journal", journal) as service, file.open("wb") as output:
        command = [PROGRAM, "logs", "-f", "--path", "/v1/e/vote", "-o", "jsonl", "--url", service.url]
        process = subprocess.Popen(command, stdout=output, stderr=subprocess.PIPE)
        try:
            wait_until(lambda: held(service) == 1)
            crowd(service)
            service.client("viewer", user="1", channel=CHANNEL).get("vote?id=end")  # after all others
            wait_until(lambda: '"/v1/e/vote?id=end"' in end_of(file))
        finally:
            process.terminate()
            process.communicate(timeout=20)

    found = list(lines(file))
    ids = [str(line["path"]).partition("=")[2] for line in found if "path" in line]
    numbers = [int(id) for id in ids if id != "end"]
    lost = sum(int(str(line["lost"])) for line in found if "lost" in line)
    assert len(numbers) == len(set(numbers))
    assert REQUESTS == len(numbers) + lost
