"""`extcli logs -f` during a crowd: each entry is printed once, or counted as lost.

`LOGS_RATE=2000 LOGS_SECONDS=10 pytest -s tests/server/test_logs_rate.py` also prints the rate that was reached.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import jwt
import pytest

from support.process import server_process, wait_until
from support.program import PROGRAM
from support.service import CHANNEL, CLIENT_ID, SECRET, RunningService
from support.waits import held

pytestmark = pytest.mark.slow
RATE = int(os.environ.get("LOGS_RATE", "300"))
"""Requests per second."""
SECONDS = int(os.environ.get("LOGS_SECONDS", "2"))
CONNECTIONS = 8
TOKEN = jwt.encode({"role": "viewer", "user_id": "1", "channel_id": CHANNEL}, SECRET)


async def crowd(service: RunningService) -> float:
    """Send `RATE` requests per second for `SECONDS`, each with its own number. Returns how long it took."""
    loop = asyncio.get_running_loop()
    started = loop.time()

    async def send(numbers: range) -> None:
        host, port = service.url.removeprefix("http://").split(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        for number in numbers:
            await asyncio.sleep(max(started + number / RATE - loop.time(), 0))  # the pace of the crowd
            head = (
                f"GET /v1/e/vote?id={number} HTTP/1.1\r\nHost: localhost\r\nAuthorization: {CLIENT_ID} {TOKEN}\r\n\r\n"
            )
            writer.write(head.encode())
            answer = await reader.readuntil(b"\r\n\r\n")
            length = next(line for line in answer.lower().split(b"\r\n") if line.startswith(b"content-length:"))
            await reader.readexactly(int(length.split(b":")[1]))
        writer.close()

    await asyncio.gather(*(send(range(first, RATE * SECONDS, CONNECTIONS)) for first in range(CONNECTIONS)))
    return loop.time() - started


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
            took = asyncio.run(crowd(service))
            service.client("viewer", user="1", channel=CHANNEL).get("vote?id=end")  # after all others
            wait_until(lambda: '"/v1/e/vote?id=end"' in end_of(file))
        finally:
            process.terminate()
            process.communicate(timeout=20)

    found = list(lines(file))
    ids = [str(line["path"]).partition("=")[2] for line in found if "path" in line]
    numbers = [int(id) for id in ids if id != "end"]
    lost = sum(int(str(line["lost"])) for line in found if "lost" in line)
    rate = f"{RATE * SECONDS / took:,.0f} requests/s with a journal of {journal}"
    sys.stdout.write(f"\n{rate}: {len(numbers):,} printed, {lost:,} lost\n")
    assert len(numbers) == len(set(numbers))
    assert RATE * SECONDS == len(numbers) + lost
