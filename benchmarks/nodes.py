"""POST vote with several processes: `python benchmarks/nodes.py [ROUNDS] [SECONDS]`.

Goal 9 compares one node on Redis with the same service in memory, and two nodes on one Redis with one. The script
starts its own `redis-server`, which must be installed, with an append-only file and `appendfsync everysec`.

`cores` compares N nodes on one Redis with one, for N up to the number of cores. Node N runs on core N, counted from 0,
and Redis and the load wherever there is time. So the largest N always shares its cores with the load, and the rows also
have what each process needs: µs of processor time per vote of a new voter.
"""

from __future__ import annotations

import base64
import os
import shutil
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import report
import uvloop
from audience import Newcomers, ballots
from common import CLIENT_ID, SECRET, Address, Started, processor_time, start_extcli, start_server
from load import load
from peers import start_program
from report import Row
from rounds import Case, laboratory, measure

OPTIONS = ("--caller-rate", "1000000", "--client-rate", "1000000", "--log-level", "warning")


def redis(stack: ExitStack, folder: Path) -> tuple[str, int]:
    """Run a Redis server until the stack closes; return its URL and process id."""
    program = shutil.which("redis-server") or shutil.which("valkey-server")
    assert program, "redis-server or valkey-server is not installed"
    persistence = ("--save", "", "--appendonly", "yes", "--appendfsync", "everysec", "--dir", folder)
    (host, port), process = start_program(
        stack, program, "--port", "PORT", "--bind", "127.0.0.1", *persistence, core=None
    )
    return f"redis://{host}:{port}/0", process


def rows(rounds: int, seconds: float) -> list[Row]:
    """Measure goal 9."""
    known, newcomers = ballots(), Newcomers()
    with laboratory(core=None) as (stack, folder):
        url, _ = redis(stack, folder)
        nodes = [start_server(stack, "redis", url, core) for core in (0, 1)]
        servers = {"memory": [start_server(stack, "memory")], "one": nodes[:1], "two": nodes}
        cases = {name: Case(some, known) for name, some in servers.items()}
        for name, some in servers.items():
            cases[f"new, {name}"] = Case(some, lambda: newcomers.round(seconds))
        again = ["one", "memory", "new, one", "new, memory"]
        results = measure(stack, cases, rounds, seconds, again=again)
    known_tokens, new = "POST vote, known tokens", "POST vote, new tokens"
    return [
        results.rate_row("9", f"{known_tokens}, one node on Redis / memory", "one", "memory", 0.85, 0.95),
        results.rate_row("9", f"{known_tokens}, two nodes on Redis / one", "two", "one", 1.5, 1.7),
        results.rate_row("9", f"{new}, one node on Redis / memory", "new, one", "new, memory", None, None),
        results.rate_row("9", f"{new}, two nodes on Redis / one", "new, two", "new, one", None, None),
    ]


def start_on_file(stack: ExitStack, folder: Path, *options: object, **popen: Any) -> Started:
    """Run `extcli serve` with its data in a file, on the first core, until the stack closes, with more `options`."""
    extensions = folder / "extensions.toml"
    extensions.write_text(f'[extensions.{CLIENT_ID}]\nsecrets = ["{base64.b64encode(SECRET).decode()}"]\n')
    extensions.chmod(0o600)
    data = ("--data", f"sqlite://{folder}/data.db", "--extensions", extensions)
    on_core = partial(os.sched_setaffinity, 0, [0])
    return start_extcli(stack, "--production", *data, *OPTIONS, *options, preexec_fn=on_core, **popen)


def spent(pids: Sequence[int]) -> float:
    """Return the seconds of processor time of processes; without any, of this one."""
    return sum(map(processor_time, pids)) if pids else time.process_time()


def cost(
    addresses: Sequence[Address], voters: Newcomers, processes: Mapping[str, Sequence[int]], seconds: float
) -> dict[str, float]:
    """Return the µs of processor time of each kind of process for the vote of a new voter."""
    requests = voters.round(seconds)
    before = {name: spent(pids) for name, pids in processes.items()}
    measured = uvloop.run(load(addresses, requests, seconds=seconds))
    return {
        f"{name} µs per first vote": (spent(pids) - before[name]) / measured.answered * 1e6
        for name, pids in processes.items()
    }


def cores(rounds: int, seconds: float) -> list[Row]:
    """Measure all numbers of processes, up to the number of cores."""
    numbers, requests, voters = range(1, len(os.sched_getaffinity(0)) + 1), ballots(), Newcomers()
    cases: dict[str, Case] = {}
    with laboratory(core=None) as (stack, folder):
        url, redis_process = redis(stack, folder)
        nodes = [start_server(stack, "redis", url, number - 1) for number in numbers]
        for number in numbers:
            cases[f"{number} on Redis"] = Case(nodes[:number], requests)
        results = measure(stack, cases, rounds, seconds, again=["1 on Redis"])
        found = []
        for number in numbers:
            name, title = f"{number} on Redis", f"N nodes on one Redis / one, N = {number}"
            row = results.rate_row("cores", title, name, "1 on Redis", None, None)
            servers = cases[name].servers
            processes = {"nodes": [each.process for each in servers], "load": [], "Redis": [redis_process]}
            costs = cost([each.address for each in servers], voters, processes, seconds)
            found.append(replace(row, figures={**row.figures, **costs}))
    return found


if __name__ == "__main__":
    report.main(rows, cores)
