"""POST vote with data in Redis against data in memory: `python benchmarks/nodes.py [ROUNDS] [SECONDS] [FSYNC]`.

Prints the median and range over interleaved rounds of: votes per second of one node on Redis, divided by those of the
same service with its data in memory; and of two nodes on the same Redis, divided by one and by memory. `redis-server`
must be installed; one of its own is started with an append-only file, whose `appendfsync` is FSYNC: `everysec`, or
`always`. The first node keeps to the first core like the service in memory, the second to another; Redis and the load
run where there is room. On two cores they take the second node's time, so that it brings less than on a machine of its
own.
"""

from __future__ import annotations

import asyncio
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import uvloop
from load import Measured, load
from votes import ballots, start

CONNECTIONS = 50


@contextmanager
def redis(folder: Path, fsync: str) -> Iterator[str]:
    """A Redis server of our own; its URL."""
    program = shutil.which("redis-server") or shutil.which("valkey-server")
    assert program, "this needs a redis-server or valkey-server"
    with socket.socket() as wire:
        wire.bind(("127.0.0.1", 0))
        port = wire.getsockname()[1]
    kept = ["--save", "", "--appendonly", "yes", "--appendfsync", fsync, "--dir", str(folder)]
    command = [program, "--port", str(port), "--bind", "127.0.0.1", *kept]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert server.stdout is not None
    while "Ready to accept connections" not in (line := server.stdout.readline()):
        assert line, "Redis did not start"
    try:
        yield f"redis://127.0.0.1:{port}/0"
    finally:
        server.terminate()
        server.wait(10)


async def votes(places: Sequence[tuple[str, int]], requests: Sequence[bytes], seconds: float) -> float:
    """Votes a second that all places together answered."""
    share = CONNECTIONS // len(places)
    done: list[Measured] = await asyncio.gather(
        *(load(host, port, requests, connections=share, seconds=seconds) for host, port in places)
    )
    assert sum(each.failed for each in done) == 0, "votes were refused"
    return sum(each.per_second for each in done)


async def measure(rounds: int, seconds: float, fsync: str) -> dict[str, list[float]]:
    """Votes a second in each round, after one that is not counted."""
    requests = ballots()
    results: dict[str, list[float]] = {"memory": [], "one": [], "two": []}
    with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        folder = Path(name)
        url = stack.enter_context(redis(folder, fsync))
        memory = start(stack, "memory", folder)
        nodes = [start(stack, "redis", folder, url, core) for core in "01"]
        for number in range(rounds + 1):
            for name, places in (("memory", [memory]), ("one", nodes[:1]), ("two", nodes)):
                per_second = await votes(places, requests, seconds)
                if number:
                    results[name].append(per_second)
    return results


def main() -> None:
    """Measure and report."""
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    seconds = float(sys.argv[2]) if len(sys.argv) > 2 else 2.0
    fsync = sys.argv[3] if len(sys.argv) > 3 else "everysec"
    results = uvloop.run(measure(rounds, seconds, fsync))
    for name, each in results.items():
        print(f"{name:8} {statistics.median(each):8.0f} votes/s")
    for name, other in (("one", "memory"), ("two", "memory"), ("two", "one")):
        ratios = [mine / theirs for mine, theirs in zip(results[name], results[other], strict=True)]
        print(f"{name} / {other}: {statistics.median(ratios):.2f} ({min(ratios):.2f}-{max(ratios):.2f})")


if __name__ == "__main__":
    main()
