"""POST vote against references in the same run: `python benchmarks/votes.py [ROUNDS] [SECONDS]`.

Prints, for each server, the median and range over interleaved rounds of: requests per second divided by those of the
plain typed Litestar route in the same round, and the 99th percentile of latency divided by that route's.
"""

from __future__ import annotations

import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import urlsplit

import jwt
import uvloop
from load import Measured, load, request
from servers import CLIENT_ID, SECRET

VOTERS = 1_000
CONNECTIONS = 50


def headers(role: str = "viewer", users: int = VOTERS) -> list[str]:
    """An `Authorization` header for each of many users of one channel."""
    ends = int(time.time()) + 3_600
    claims = [{"role": role, "user_id": str(number), "channel_id": "1", "exp": ends} for number in range(users)]
    return [f"{CLIENT_ID} {jwt.encode(each, SECRET)}" for each in claims]


def ballots(voters: int = VOTERS) -> list[bytes]:
    """One vote of each voter, in random order."""
    dice = random.Random(7)
    requests = [
        request("POST", "/v1/e/vote?id=poll", header, b'{"value":%d}' % dice.randrange(0, 10))
        for header in headers(users=voters)
    ]
    dice.shuffle(requests)
    return requests


def start(stack: ExitStack, name: str, folder: Path, *more: str) -> tuple[str, int]:
    """Start one of the servers and return where it listens. Its data is a file in `folder`, if `more` names none."""
    here = Path(__file__).parent
    command = [sys.executable, str(here / "servers.py"), name, *(more or [str(folder / f"{name}.db")])]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    stack.callback(process.wait, 10)
    stack.callback(process.terminate)
    assert process.stdout is not None
    url = urlsplit(process.stdout.readline().strip())
    assert url.port, f"{name} did not start"
    return str(url.hostname), url.port


async def measure(rounds: int, seconds: float, names: list[str]) -> dict[str, list[Measured]]:
    """Rounds of all servers in turn, after one that is not counted."""
    requests = ballots()
    results: dict[str, list[Measured]] = {name: [] for name in names}
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        places = {name: start(stack, name, Path(folder)) for name in names}
        for number in range(rounds + 1):
            for name, (host, port) in places.items():
                measured = await load(host, port, requests, connections=CONNECTIONS, seconds=seconds)
                assert measured.failed == 0, f"{name} refused {measured.failed} votes"
                if number:
                    results[name].append(measured)
    return results


def report(results: dict[str, list[Measured]], reference: str) -> None:
    """One line for each server: ratios to the reference, pair by pair."""
    print(f"{'server':10} {'req/s':>8}  {'ratio':>6} (range)          p99 ms  {'p99 ratio':>9}")
    for name, rounds in results.items():
        ratios = [mine.per_second / theirs.per_second for mine, theirs in zip(rounds, results[reference], strict=True)]
        tails = [mine.p99 / theirs.p99 for mine, theirs in zip(rounds, results[reference], strict=True)]
        print(
            f"{name:10} {statistics.median(each.per_second for each in rounds):8.0f}  "
            f"{statistics.median(ratios):6.2f} ({min(ratios):.2f}-{max(ratios):.2f})    "
            f"{statistics.median(each.p99 for each in rounds) * 1e3:8.2f}  {statistics.median(tails):9.2f}"
        )


def main() -> None:
    """Measure and report."""
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    seconds = float(sys.argv[2]) if len(sys.argv) > 2 else 2.0
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {1})
    results = uvloop.run(measure(rounds, seconds, ["plain", "bare", "memory", "file"]))
    report(results, "plain")
    file, memory, bare = (results[name] for name in ("file", "memory", "bare"))
    for name, other in (("bare", bare), ("memory", memory)):
        ratios = [mine.per_second / theirs.per_second for mine, theirs in zip(file, other, strict=True)]
        print(f"file / {name}: {statistics.median(ratios):.2f} ({min(ratios):.2f}-{max(ratios):.2f})")


if __name__ == "__main__":
    main()
