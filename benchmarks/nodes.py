"""Goal 9: POST vote on Redis, with one process and with two.

One node on Redis is compared with the same service in memory, and two nodes on one Redis with one. The figures also
have the processor time of each kind of process for the vote of a new voter, from which docs/scaling.md is computed.

Node N runs on core N, counted from 0, and Redis and the load wherever there is time. Redis has an append-only file and
`appendfsync everysec`; `redis-server` or `valkey-server` must be installed.
"""

from __future__ import annotations

import os
import shutil
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import uvloop
from audience import Newcomers, ballots
from common import Started, processor_time, start, start_service
from load import load
from report import Row
from rounds import Case, laboratory, measure


def redis(stack: ExitStack, folder: Path) -> tuple[str, Started]:
    """Run a Redis server until the stack closes; return its URL."""
    program = shutil.which("redis-server") or shutil.which("valkey-server")
    assert program, "redis-server or valkey-server is not installed"
    persistence = ("--save", "", "--appendonly", "yes", "--appendfsync", "everysec", "--dir", folder)
    server = start(stack, program, "--port", "PORT", "--bind", "127.0.0.1", *persistence, core=None)
    return f"redis://127.0.0.1:{server.address[1]}/0", server


def costs(node: Started, redis: Started, seconds: float) -> dict[str, float]:
    """Return the µs of processor time of each process for the vote of a new voter."""
    requests = Newcomers().round(seconds)
    pids = {"node": node.process.pid, "Redis": redis.process.pid, "load": os.getpid()}
    before = {name: processor_time(pid) for name, pid in pids.items()}
    measured = uvloop.run(load([node.address], requests, seconds=seconds))
    return {
        f"{name} µs per first vote": (processor_time(pid) - before[name]) / measured.answered * 1e6
        for name, pid in pids.items()
    }


def rows(rounds: int, seconds: float) -> list[Row]:
    """Measure goal 9."""
    with laboratory(core=None) as (stack, folder):
        url, server = redis(stack, folder)
        nodes = [start_service(stack, url, core=core) for core in (0, 1)]
        servers = {"memory": [start_service(stack, "sqlite://")], "one": nodes[:1], "two": nodes}
        cases = {name: Case(some, ballots()) for name, some in servers.items()}
        results = measure(stack, cases, rounds, seconds, again=["one", "memory"])
        figures = costs(nodes[0], server, seconds)
    vote = "POST vote, known tokens"
    one = results.row("9", f"{vote}, one node on Redis / memory", "one", "memory", 0.85, 0.95)
    return [
        replace(one, figures={**one.figures, **figures}),
        results.row("9", f"{vote}, two nodes on Redis / one", "two", "one", 1.5, 1.7),
    ]
