"""POST vote with data in Redis against memory: `python benchmarks/nodes.py [ROUNDS] [SECONDS] [FSYNC]`.

Prints the median and range over interleaved rounds of votes per second: of one node on Redis divided by the same
service in memory, and of two nodes on that Redis divided by one and by memory. It starts its own `redis-server`, which
must be installed, with an append-only file and `appendfsync` FSYNC: `everysec` or `always`.

The first node and the service in memory run on the first core, the second node on the second. With only two cores,
Redis and the load compete with the second node, so the last ratio is lower than on separate machines.
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
from audience import ballots
from common import Address, argument, start_server
from load import CONNECTIONS, load
from report import ratios, spread


@contextmanager
def redis(folder: Path, fsync: str) -> Iterator[str]:
    """Run a Redis server; yield its URL."""
    program = shutil.which("redis-server") or shutil.which("valkey-server")
    assert program, "redis-server or valkey-server is not installed"
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    persistence = ["--save", "", "--appendonly", "yes", "--appendfsync", fsync, "--dir", str(folder)]
    command = [program, "--port", str(port), "--bind", "127.0.0.1", *persistence]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert server.stdout is not None
    while "Ready to accept connections" not in (line := server.stdout.readline()):
        assert line, "Redis did not start"
    try:
        yield f"redis://127.0.0.1:{port}/0"
    finally:
        server.terminate()
        server.wait(10)


async def votes(addresses: Sequence[Address], requests: Sequence[bytes], seconds: float) -> float:
    """Return the votes per second of all nodes together."""
    connections = CONNECTIONS // len(addresses)
    measured = await asyncio.gather(
        *(load(host, port, requests, connections=connections, seconds=seconds) for host, port in addresses)
    )
    assert sum(each.failed for each in measured) == 0, "votes were refused"
    return sum(each.per_second for each in measured)


async def measure(rounds: int, seconds: float, fsync: str) -> dict[str, list[float]]:
    """Return votes per second in each round; the first round is a warm-up."""
    requests = ballots()
    results: dict[str, list[float]] = {"memory": [], "one": [], "two": []}
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        url = stack.enter_context(redis(Path(folder), fsync))
        memory, _ = start_server(stack, "memory")
        nodes = [start_server(stack, "redis", url, core)[0] for core in (0, 1)]
        for number in range(rounds + 1):
            for name, addresses in (("memory", [memory]), ("one", nodes[:1]), ("two", nodes)):
                per_second = await votes(addresses, requests, seconds)
                if number:
                    results[name].append(per_second)
    return results


def main() -> None:
    fsync = sys.argv[3] if len(sys.argv) > 3 else "everysec"
    results = uvloop.run(measure(int(argument(1, 5)), argument(2, 2), fsync))
    for name, rates in results.items():
        print(f"{name:8} {statistics.median(rates):8.0f} votes/s")
    for name, other in (("one", "memory"), ("two", "memory"), ("two", "one")):
        print(f"{name} / {other}: {spread(ratios(results[name], results[other]))}")


if __name__ == "__main__":
    main()
