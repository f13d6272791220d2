"""POST vote with data in Redis: `python benchmarks/nodes.py [ROUNDS] [SECONDS]`.

Goal 9 compares one node on Redis with the same service in memory, and two nodes on one Redis with one. The script
starts its own `redis-server`, which must be installed, with an append-only file and `appendfsync everysec`.

The service in memory and the first node run on core 0, the second node on core 1. Redis and the load run where there is
time. On two cores they compete with the second node, so that two nodes gain less than on separate machines.
"""

from __future__ import annotations

import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import report
import uvloop
from audience import Newcomers, ballots
from common import start_server
from report import Row
from rounds import AGAIN, ECHO, Case, Results, interleave


@contextmanager
def redis(folder: Path) -> Iterator[tuple[str, int]]:
    """Run a Redis server; yield its URL and process id."""
    program = shutil.which("redis-server") or shutil.which("valkey-server")
    assert program, "redis-server or valkey-server is not installed"
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    persistence = ["--save", "", "--appendonly", "yes", "--appendfsync", "everysec", "--dir", str(folder)]
    command = [program, "--port", str(port), "--bind", "127.0.0.1", *persistence]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert server.stdout is not None
    while "Ready to accept connections" not in (line := server.stdout.readline()):
        assert line, "Redis did not start"
    try:
        yield f"redis://127.0.0.1:{port}/0", server.pid
    finally:
        server.terminate()
        server.wait(10)


async def _measure(rounds: int, seconds: float) -> Results:
    known, newcomers = ballots(), Newcomers()
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        url, _ = stack.enter_context(redis(Path(folder)))
        memory, _ = start_server(stack, "memory")
        nodes = [start_server(stack, "redis", url, core)[0] for core in (0, 1)]
        echo, _ = start_server(stack, ECHO)
        servers = {"memory": [memory], "one": nodes[:1], "two": nodes}
        servers |= {name + AGAIN: servers[name] for name in ("one", "memory")}
        cases = {name: Case(addresses, lambda: known) for name, addresses in servers.items()}
        for name, addresses in servers.items():
            cases[f"new, {name}"] = Case(addresses, lambda: newcomers.round(seconds))
        return await interleave({**cases, ECHO: Case([echo], lambda: known)}, rounds, seconds)


def rows(rounds: int, seconds: float) -> list[Row]:
    """Measure goal 9."""
    results = uvloop.run(_measure(rounds, seconds))
    known, new = "POST vote, known tokens", "POST vote, new tokens"
    return [
        results.rate_row("9", f"{known}, one node on Redis / memory", "one", "memory", 0.8, 0.95),
        results.rate_row("9", f"{known}, two nodes on Redis / one", "two", "one", 1.4, 1.7),
        results.rate_row("9", f"{new}, one node on Redis / memory", "new, one", "new, memory", None, None),
        results.rate_row("9", f"{new}, two nodes on Redis / one", "new, two", "new, one", None, None),
    ]


if __name__ == "__main__":
    report.main(rows)
