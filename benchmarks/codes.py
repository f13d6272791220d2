"""Reward codes at full size: `python benchmarks/codes.py [CODES_PER_SET] [LENGTH] [USERS] [SPENT_SETS]`.

Uploads, lists, redeems and deletes ten sets, and marks a list of users and a poll's voters. Then it notes all codes of
some sets as spent, except their last ones, redeems one that comes after spent ones, and uploads the sets again. For
each step it prints the time, the processor time of the service, its peak memory above idle, and the latency of votes
meanwhile. `pause` is the longest time that a small request had to wait. `rows` measures goal 10: one upload.
"""

from __future__ import annotations

import asyncio
import random
import sqlite3
import statistics
import string
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import uvloop
from audience import ballots, headers
from common import Address, Started, argument, memory, pin_to_core, processor_time, reset_peak, start_server
from large_poll import fill
from load import Measured, load, request
from report import Row, ratios
from rounds import laboratory

SETS = 10
SENDER = """
import http.client, sys
host, port, method, path, header = sys.argv[1:]
connection = http.client.HTTPConnection(host, int(port), timeout=600)
body = sys.stdin.buffer
connection.request(method, path, body, {"Authorization": header}, encode_chunked=True)
answer = connection.getresponse()
sys.stdout.buffer.write(answer.read())
sys.exit(answer.status != 200)
"""


def batches_of(codes: int, length: int) -> Iterator[tuple[int, list[str]]]:
    """Yield the codes of ten sets with `codes` codes each: the number of the set, and some of its codes."""
    generator = random.Random(7)
    letters = string.ascii_uppercase + string.digits
    for number in range(SETS):
        for first in range(0, codes, 10_000):
            noise = "".join(generator.choices(letters, k=length - 8))
            yield number, [f"{number}{code:07}{noise}" for code in range(first, min(first + 10_000, codes))]


def body_of(codes: int, length: int) -> Iterator[bytes]:
    """Yield the body of a PUT of ten sets with `codes` codes each, in pieces."""
    yield b'{"codes":['
    current = -1
    for number, batch in batches_of(codes, length):
        yield b"," if number == current else b"[" if number == 0 else b"],["
        yield b'"' + '","'.join(batch).encode() + b'"'
        current = number
    yield b"]"
    names = ",".join(f'"Set {number}"' for number in range(SETS))
    yield f'],"names":[{names}]}}'.encode()


def list_of(users: int) -> Iterator[bytes]:
    """Yield the body that marks a list of users for a code of two sets each, in pieces."""
    yield b'{"prizes":[0,1],"prize_limits":[1,1],"users":["0"'
    for first in range(1, users, 10_000):
        yield "".join(f',"{number}"' for number in range(first, min(first + 10_000, users))).encode()
    yield b"]}"


async def send(address: Address, method: str, path: str, header: str, body: Path | bytes) -> Any:
    """Send a request from another process, so that this one keeps measuring; return the decoded response."""
    command = [sys.executable, "-c", SENDER, *map(str, address), method, path, header]
    stdin = body.open("rb") if isinstance(body, Path) else subprocess.PIPE
    sender = await asyncio.create_subprocess_exec(*command, stdin=stdin, stdout=subprocess.PIPE)
    answer, _ = await sender.communicate(None if isinstance(body, Path) else body)
    assert sender.returncode == 0, answer[:500]
    return msgspec.json.decode(answer)


def spend(file: Path, codes: int, length: int, sets: int) -> None:
    """Note the codes of some sets, from the second on, as spent, except the last code of each."""
    from emulator.storage.records import digest_of

    connection = sqlite3.connect(file, isolation_level=None, timeout=10)
    connection.execute("PRAGMA cache_size = -200000")
    (family,) = connection.execute("SELECT id FROM families").fetchone()
    last = f"{codes - 1:07}"
    for number, batch in batches_of(codes, length):
        if (number - 1) % SETS < sets:
            rows = [(family, digest_of(code)) for code in batch if code[1:8] != last]
            connection.execute("BEGIN IMMEDIATE")
            connection.executemany("INSERT OR IGNORE INTO spent VALUES (?, ?)", rows)
            connection.execute("COMMIT")
    connection.close()


async def longest_pause(address: Address, done: asyncio.Event) -> float:
    """Send the smallest request repeatedly; return the longest wait in seconds."""
    reader, writer = await asyncio.open_connection(*address)
    longest = 0.0
    while not done.is_set():
        started = time.perf_counter()
        writer.write(b"GET /_emulator/live HTTP/1.1\r\nHost: bench\r\n\r\n")
        await reader.readuntil(b"}")
        longest = max(longest, time.perf_counter() - started)
        await asyncio.sleep(0.001)
    writer.close()
    return longest


async def voting(server: Started, votes: list[bytes], done: asyncio.Event) -> list[Measured]:
    """Vote over eight connections until `done`; return the measurement of each second."""
    found = []
    while not done.is_set():
        found.append(await load([server.address], votes, connections=8, seconds=1))
    return found


async def report_step(name: str, server: Started, votes: list[bytes], work: Callable[[], Awaitable[Any]]) -> Any:
    """Run `work` while eight connections vote; print what it took, and return its result."""
    done = asyncio.Event()
    idle, used = reset_peak(server.process), processor_time(server.process)
    others = asyncio.gather(voting(server, votes, done), longest_pause(server.address, done))
    started = time.perf_counter()
    result = await work()
    elapsed = time.perf_counter() - started
    done.set()
    measured, pause = await others
    used = processor_time(server.process) - used
    print(
        f"{name:20} {elapsed:7.2f} s   cpu with votes {used:6.2f} s   "
        f"+{(memory(server.process, 'VmHWM') - idle) / 2**20:4.0f} MiB peak   "
        f"votes p99 {max(each.p99 for each in measured) * 1e3:5.1f} ms   pause {pause * 1e3:5.1f} ms   "
        f"failed {sum(each.failed for each in measured)}"
    )
    return result


@dataclass
class Uploads:
    """What the rounds of `rows` measured."""

    growth: list[float] = field(default_factory=list)
    """Peak memory of the service above idle, in bytes."""
    times: list[float] = field(default_factory=list)
    """Seconds of an upload while nothing else happens."""
    decodes: list[float] = field(default_factory=list)
    """Seconds of one msgspec decode of the body."""
    decodes_again: list[float] = field(default_factory=list)
    before: list[float] = field(default_factory=list)
    """99th percentile of votes in ms, before an upload."""
    before_again: list[float] = field(default_factory=list)
    during: list[float] = field(default_factory=list)


async def upload_once(upload: Path, seconds: float, found: Uploads) -> None:
    """Upload to a new service, alone and then while a crowd votes."""
    votes, (backend,) = ballots(), headers("backend", users=1)
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        address, process = start_server(stack, "file", Path(folder) / "data.db")

        async def p99(duration: float) -> float:
            measured = await load([address], votes, connections=8, seconds=duration)
            assert measured.failed == 0, f"{measured.failed} votes failed"
            return measured.p99 * 1e3

        found.before.append(await p99(seconds))
        idle = memory(process, "VmHWM")
        started = time.perf_counter()
        await send(address, "PUT", "/v1/e/codes", backend, upload)
        elapsed = time.perf_counter() - started
        found.times.append(elapsed)
        found.growth.append(memory(process, "VmHWM") - idle)
        found.before_again.append(await p99(seconds))
        uploading = asyncio.create_task(send(address, "PUT", "/v1/e/codes", backend, upload))
        found.during.append(await p99(elapsed * 0.8))  # votes delay the upload, so it lasts longer than they do
        await uploading


def rows(rounds: int, seconds: float, codes: int = 999_999) -> list[Row]:
    """Measure goal 10, with a new service in each round."""
    pin_to_core(1)
    found = Uploads()
    with tempfile.TemporaryDirectory() as folder:
        upload = Path(folder) / "codes.json"
        with upload.open("wb") as file:
            file.writelines(body_of(codes, 16))
        size, body = upload.stat().st_size, upload.read_bytes()
        for _ in range(rounds):
            for decodes in (found.decodes, found.decodes_again):
                started = time.perf_counter()
                msgspec.json.decode(body)
                decodes.append(time.perf_counter() - started)
            uvloop.run(upload_once(upload, seconds, found))
    before = [(one + two) / 2 for one, two in zip(found.before, found.before_again, strict=True)]
    decodes = [(one + two) / 2 for one, two in zip(found.decodes, found.decodes_again, strict=True)]
    name = f"PUT of {SETS} sets of {codes:,} codes"
    less = partial(Row, "10", higher_is_better=False)
    median = statistics.median
    return [
        less(f"{name}: peak memory / body", [each / size for each in found.growth], [], must=0.3, stretch=0.2),
        less(
            f"{name}: time / msgspec decode",
            ratios(found.times, decodes),
            ratios(found.decodes_again, found.decodes),
            must=5.0,
            stretch=3.0,
            figures={"PUT s": median(found.times), "decode s": median(decodes)},
        ),
        less(
            f"{name}: p99 of votes meanwhile / before",
            ratios(found.during, before),
            ratios(found.before_again, found.before),
            must=3.0,
            stretch=2.0,
            figures={"during p99 ms": median(found.during), "before p99 ms": median(before)},
        ),
    ]


async def main() -> None:
    codes, length, users = int(argument(1, 999_999)), int(argument(2, 16)), int(argument(3, 1_000_000))
    spent_sets = int(argument(4, 1))
    votes = ballots()
    with laboratory() as (stack, folder):
        file, upload, listed = folder / "data.db", folder / "codes.json", folder / "users.json"
        await fill(f"sqlite://{file}", users)
        server = start_server(stack, "file", file)
        (backend,), (user,) = headers("backend", users=1), headers(users=1)
        with upload.open("wb") as body:
            body.writelines(body_of(codes, length))
        with listed.open("wb") as body:
            body.writelines(list_of(users))
        size = upload.stat().st_size
        print(f"{SETS} sets of {codes:,} codes of {length} characters, {size / 1e6:.0f} MB; {users:,} users")
        before = await load([server.address], votes, connections=8, seconds=3)
        print(f"votes before: p99 {before.p99 * 1e3:.1f} ms")

        def step(name: str, method: str, path: str, body: Any = b"", header: str = backend) -> Awaitable[Any]:
            sent = body if isinstance(body, (Path, bytes)) else msgspec.json.encode(body)
            return report_step(
                name, server, votes, lambda: send(server.address, method, f"/v1/e/codes{path}", header, sent)
            )

        await step("PUT codes", "PUT", "", upload)
        await step("PUT codes again", "PUT", "", upload)
        print("names:", (await step("GET codes", "GET", ""))["names"][:2], "…")
        await step("mark_from_list", "POST", "/mark_from_list", listed)
        poll = {"prizes": [2], "prize_limits": [1, 1, 1], "correct": 3, "cutoff_timestamp": 4_000_000_000}
        await step("mark_from_poll", "POST", "/mark_from_poll?id=large&channel_id=1", poll)
        redeem = [request("POST", "/v1/e/codes/redeem", each, b'{"prize":0}') for each in headers(users=1_000)]
        redeemed = await load([server.address], redeem, connections=8, seconds=2)
        print(f"redeem: {redeemed.per_second:,.0f}/s, p99 {redeemed.p99 * 1e3:.1f} ms, failed {redeemed.failed}")
        if spent_sets:
            spend(file, codes, length, spent_sets)
            print("code found:", "code" in await step("redeem after spent", "POST", "/redeem", {"prize": 1}, user))
            await step("PUT codes with spent", "PUT", "", upload)
        print("distributed:", (await step("DELETE codes", "DELETE", ""))["distributed"])


if __name__ == "__main__":
    uvloop.run(main())
