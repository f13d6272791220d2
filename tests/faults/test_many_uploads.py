"""More uploads at once than the service takes: it refuses the others, and goes on."""

from __future__ import annotations

import json
import re
import socket
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event

import pytest

from faults.crowd import ACKNOWLEDGED, Crowd
from support.process import RunningService, server_process
from support.service import OTHER_ID

pytestmark = pytest.mark.long

UPLOADS, AT_ONCE, CODES = 30, 2, 5_000


def body(number: int) -> bytes:
    return json.dumps({"codes": [[f"{number}-{code}" for code in range(CODES)]], "names": [f"set {number}"]}).encode()


def begin(service: RunningService, number: int) -> socket.socket:
    """Send all of an upload but its last byte."""
    header = service.client("backend", client_id=OTHER_ID).headers["Authorization"]
    connection = service.connect()
    head = (
        f"PUT /v1/e/codes HTTP/1.1\r\nHost: x\r\nAuthorization: {header}\r\nContent-Length: {len(body(number))}\r\n\r\n"
    )
    connection.sendall(head.encode() + body(number)[:-1])
    return connection


def memory_of(service: RunningService) -> int:
    """Return the largest resident memory so far, in KiB."""
    (found,) = re.findall(r"VmHWM:\s+(\d+)", Path(f"/proc/{service.process.pid}/status").read_text())
    return int(found)


def test_uploads_beyond_the_limit_are_503_and_no_write_is_lost(tmp_path: Path):
    crowd, refusals, is_refused = Crowd(), list[int](), Event()
    with server_process("--data", f"sqlite://{tmp_path}/data.db", "--max-uploads", str(AT_ONCE)) as served:
        crowd.prepare(served)
        before = memory_of(served)

        def upload(number: int) -> None:
            """Repeat an upload until it is accepted; each has its own extension, and so its own sets."""
            with served.client("backend", client_id=f"{OTHER_ID}-{number}") as backend:
                while (answer := backend.put("codes", content=body(number))).status_code != 200:
                    assert (503, "Too many uploads") == (answer.status_code, answer.json()["reason"])
                    refusals.append(number)
                    is_refused.set()

        with crowd.writing(served), ThreadPoolExecutor(UPLOADS) as threads:
            slow = [begin(served, number) for number in range(AT_ONCE)]
            running = [threads.submit(upload, number) for number in range(AT_ONCE, UPLOADS)]
            assert is_refused.wait(30)
            crowd.wait_for(ACKNOWLEDGED, 100)
            for number, connection in enumerate(slow):
                connection.sendall(body(number)[-1:])
                assert connection.recv(65_536).startswith(b"HTTP/1.1 200 ")
                connection.close()
            for each in running:
                each.result(60)
        account = crowd.account(served)
        sets = [
            served.client("backend", client_id=f"{OTHER_ID}-{number}").get("codes").json()
            for number in range(AT_ONCE, UPLOADS)
        ]
        grown = memory_of(served) - before
    print(f"\n{UPLOADS} uploads at once: {len(refusals)} refused, memory grew by {grown} KiB; {account}")  # noqa: T201

    assert account.faultless, account
    assert [([f"set {number}"], [CODES]) for number in range(AT_ONCE, UPLOADS)] == [
        (each["names"], each["left"]) for each in sets
    ]
