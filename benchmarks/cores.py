"""POST vote with several processes: `python benchmarks/cores.py [ROUNDS] [SECONDS]`.

Compares N workers on one file, and N nodes on one Redis, with one of them, for N up to the number of cores. Worker or
node N runs on core N, counted from 0, and Redis and the load wherever there is time. So the largest N always shares its
cores with the load, and the rows also have what each process needs: µs of processor time per vote of a new voter.
"""

from __future__ import annotations

import base64
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path

import report
import uvloop
from audience import Newcomers, ballots
from common import CLIENT_ID, SECRET, Address, start_server
from load import load_all
from nodes import redis
from report import Row
from rounds import AGAIN, ECHO, Case, Results, interleave

OPTIONS = ("--port", "0", "--caller-rate", "1000000", "--client-rate", "1000000", "--log-level", "warning")
PROGRAM = "from extcli.main import main; main()"


def start_workers(stack: ExitStack, folder: Path, workers: int) -> tuple[Address, int]:
    """Run `extcli serve` on the first `workers` cores until the stack closes; return its address and process id."""
    extensions = folder / "extensions.toml"
    extensions.write_text(f'[extensions.{CLIENT_ID}]\nsecrets = ["{base64.b64encode(SECRET).decode()}"]\n')
    extensions.chmod(0o600)
    data = f"sqlite://{folder}/{workers}.db"
    arguments = ["serve", "--production", "--extensions", str(extensions), "--data", data, "--workers", str(workers)]
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, *arguments, *OPTIONS],
        stdout=subprocess.PIPE,
        text=True,
        preexec_fn=partial(os.sched_setaffinity, 0, range(workers)),
    )
    stack.callback(process.wait, 20)
    stack.callback(process.terminate)
    assert process.stdout is not None
    line = process.stdout.readline()
    match = re.fullmatch(r"listening on http://([\d.]+):(\d+)\n", line)
    assert match, f"extcli serve did not start: {line}"
    return (match[1], int(match[2])), process.pid


def processor_time(process: int) -> float:
    """Return the seconds of processor time of a process and its children."""
    folder = Path(f"/proc/{process}")
    fields = (folder / "stat").read_text().rpartition(")")[2].split()
    children = (folder / "task" / str(process) / "children").read_text().split()
    own = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return own + sum(processor_time(int(child)) for child in children)


def spent(pids: Sequence[int]) -> float:
    """Return the seconds of processor time of processes; without any, of this one."""
    return sum(map(processor_time, pids)) if pids else time.process_time()


async def cost(
    addresses: Sequence[Address], voters: Newcomers, processes: Mapping[str, Sequence[int]], seconds: float
) -> dict[str, float]:
    """Return the µs of processor time of each kind of process for the vote of a new voter."""
    requests = voters.round(seconds)
    before = {name: spent(pids) for name, pids in processes.items()}
    measured = await load_all(addresses, requests, seconds=seconds)
    return {
        f"{name} µs per first vote": (spent(pids) - before[name]) / measured.answered * 1e6
        for name, pids in processes.items()
    }


async def _measure(rounds: int, seconds: float) -> tuple[Results, dict[str, dict[str, float]]]:
    cores = len(os.sched_getaffinity(0))
    requests = ballots()
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        cases: dict[str, Case] = {}
        processes: dict[str, dict[str, list[int]]] = {}
        url, redis_process = stack.enter_context(redis(Path(folder)))
        nodes = [start_server(stack, "redis", url, core) for core in range(cores)]
        for number in range(1, cores + 1):
            address, process = start_workers(stack, Path(folder), number)
            cases[f"{number} on file"] = Case([address], lambda: requests)
            processes[f"{number} on file"] = {"workers": [process], "load": []}
            some = nodes[:number]
            cases[f"{number} on Redis"] = Case([address for address, _ in some], lambda: requests)
            pids = [process for _, process in some]
            processes[f"{number} on Redis"] = {"nodes": pids, "Redis": [redis_process], "load": []}
        for name in ("1 on file", "1 on Redis"):
            cases[name + AGAIN] = cases[name]
        cases[ECHO] = Case([start_server(stack, ECHO)[0]], lambda: requests)
        results = await interleave(cases, rounds, seconds)
        voters = Newcomers()
        return results, {
            name: await cost(cases[name].addresses, voters, pids, seconds) for name, pids in processes.items()
        }


def rows(rounds: int, seconds: float) -> list[Row]:
    """Measure all numbers of processes, up to the number of cores."""
    results, costs = uvloop.run(_measure(rounds, seconds))
    found = []
    for number in range(1, len(os.sched_getaffinity(0)) + 1):
        for kind, data in (("workers", "file"), ("nodes", "Redis")):
            name = f"{number} on {data}"
            row = results.rate_row(
                "cores", f"N {kind} on one {data} / one, N = {number}", name, f"1 on {data}", None, None
            )
            found.append(replace(row, figures={**row.figures, **costs[name]}))
    return found


if __name__ == "__main__":
    report.main(rows)
