"""Reward codes at full size: `python benchmarks/codes.py [CODES_PER_SET] [LENGTH] [USERS]`.

Ten sets are put, listed, redeemed from and dropped, a list of users and a poll's voters are marked; for each the time,
the memory that the service took beyond what it had idle, and how long votes waited meanwhile. `pause` is the longest
time in which the service answered nothing, asked all the while.
"""

from __future__ import annotations

import asyncio
import os
import random
import string
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import msgspec
import uvloop
from large_poll import fill
from load import Measured, load, request
from votes import ballots, headers

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


def body_of(codes: int, length: int) -> Iterator[bytes]:
    """A PUT of so many codes for each of ten sets, piece by piece, without holding it."""
    dice = random.Random(7)
    letters = string.ascii_uppercase + string.digits
    yield b'{"codes":['
    for number in range(SETS):
        yield b"[" if number == 0 else b",["
        for begin in range(0, codes, 10_000):
            some = range(begin, min(begin + 10_000, codes))
            noise = "".join(dice.choices(letters, k=length - 8))
            yield (b"," if begin else b"") + ",".join(f'"{number}{code:07}{noise}"' for code in some).encode()
        yield b"]"
    names = ",".join(f'"Set {number}"' for number in range(SETS))
    yield f'],"names":[{names}]}}'.encode()


def list_of(users: int) -> Iterator[bytes]:
    """A list of so many users, to be granted a code of two sets each."""
    yield b'{"prizes":[0,1],"prize_limits":[1,1],"users":["0"'
    for begin in range(1, users, 10_000):
        yield "".join(f',"{number}"' for number in range(begin, min(begin + 10_000, users))).encode()
    yield b"]}"


async def send(place: tuple[str, int], method: str, path: str, header: str, body: Path | bytes) -> Any:
    """One request by a process of its own, so that sending it holds up nobody here; returns its answer, decoded."""
    call = [sys.executable, "-c", SENDER, *map(str, place), method, path, header]
    given = body.open("rb") if isinstance(body, Path) else subprocess.PIPE
    sender = await asyncio.create_subprocess_exec(*call, stdin=given, stdout=subprocess.PIPE)
    answer, _ = await sender.communicate(None if isinstance(body, Path) else body)
    assert sender.returncode == 0, answer[:500]
    return msgspec.json.decode(answer)


def start(stack: ExitStack, folder: Path) -> tuple[tuple[str, int], int]:
    """Start a service on a file; returns where it listens, and its process."""
    command = [sys.executable, str(Path(__file__).with_name("servers.py")), "file", str(folder / "file.db")]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    stack.callback(process.wait, 20)
    stack.callback(process.terminate)
    assert process.stdout is not None
    url = urlsplit(process.stdout.readline().strip())
    assert url.port, "the service did not start"
    return (str(url.hostname), url.port), process.pid


def peak(process: int) -> int:
    """The most memory that a process has had, in bytes."""
    lines = Path(f"/proc/{process}/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM"))


async def pauses(place: tuple[str, int], ended: asyncio.Event) -> float:
    """Ask for the smallest answer there is, again and again; the longest wait in seconds."""
    reader, writer = await asyncio.open_connection(*place)
    longest = 0.0
    while not ended.is_set():
        began = time.perf_counter()
        writer.write(b"GET /_emulator/live HTTP/1.1\r\nHost: bench\r\n\r\n")
        await reader.readuntil(b"}")
        longest = max(longest, time.perf_counter() - began)
        await asyncio.sleep(0.001)
    writer.close()
    return longest


async def beside(
    place: tuple[str, int], votes: list[bytes], work: Callable[[], Awaitable[Any]]
) -> tuple[float, float, list[Measured], Any]:
    """Do something while eight connections vote; its seconds, the longest pause, the votes, and what it answered."""
    ended = asyncio.Event()

    async def vote() -> AsyncIterator[Measured]:
        while not ended.is_set():
            yield await load(*place, votes, connections=8, seconds=1)

    async def voting() -> list[Measured]:
        return [each async for each in vote()]

    others = asyncio.gather(voting(), pauses(place, ended))
    began = time.perf_counter()
    answer = await work()
    spent = time.perf_counter() - began
    ended.set()
    measured, pause = await others
    return spent, pause, measured, answer


async def main() -> None:
    """Measure each call, and report."""
    codes, length, users = (int(each) for each in (*sys.argv[1:], *("999999", "16", "1000000")[len(sys.argv) - 1 :]))
    votes = ballots()
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        await fill(Path(folder) / "file.db", users)
        place, process = start(stack, Path(folder))
        (backend,) = headers("backend", users=1)
        calm = await load(*place, votes, connections=8, seconds=3)
        idle = peak(process)
        upload, listed = Path(folder) / "codes.json", Path(folder) / "users.json"
        with upload.open("wb") as file:
            file.writelines(body_of(codes, length))
        with listed.open("wb") as file:
            file.writelines(list_of(users))
        size = upload.stat().st_size
        print(f"{SETS} sets of {codes:,} codes of {length} characters, {size / 1e6:.0f} MB; {users:,} users")
        print(f"votes before: p99 {calm.p99 * 1e3:.1f} ms; idle peak {idle / 2**20:.0f} MiB")

        async def report(name: str, work: Callable[[], Awaitable[Any]]) -> Any:
            spent, pause, measured, answer = await beside(place, votes, work)
            p99 = max(each.p99 for each in measured)
            failed = sum(each.failed for each in measured)
            print(
                f"{name:16} {spent:7.2f} s   +{(peak(process) - idle) / 2**20:4.0f} MiB at most   "
                f"votes p99 {p99 * 1e3:5.1f} ms   pause {pause * 1e3:5.1f} ms   failed {failed}"
            )
            return answer

        def call(method: str, path: str, body: Any = None) -> Callable[[], Awaitable[Any]]:
            text = b"" if body is None else msgspec.json.encode(body)
            return lambda: send(place, method, path, backend, text)

        await report("PUT codes", lambda: send(place, "PUT", "/v1/e/codes", backend, upload))
        await report("PUT codes again", lambda: send(place, "PUT", "/v1/e/codes", backend, upload))
        print("names:", (await report("GET codes", call("GET", "/v1/e/codes")))["names"][:2], "…")

        mark = "/v1/e/codes/mark_from_list"
        await report("mark_from_list", lambda: send(place, "POST", mark, backend, listed))
        poll = {"prizes": [2], "prize_limits": [1, 1, 1], "correct": 3, "cutoff_timestamp": 4_000_000_000}
        await report("mark_from_poll", call("POST", "/v1/e/codes/mark_from_poll?id=large&channel_id=1", poll))
        redeem = [request("POST", "/v1/e/codes/redeem", each, b'{"prize":0}') for each in headers(users=1_000)]
        redeemed = await load(*place, redeem, connections=8, seconds=2)
        print(f"redeem: {redeemed.per_second:,.0f}/s, p99 {redeemed.p99 * 1e3:.1f} ms, failed {redeemed.failed}")
        print("distributed:", (await report("DELETE codes", call("DELETE", "/v1/e/codes")))["distributed"])


if __name__ == "__main__":
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {1})
    uvloop.run(main())
