"""What namespaces cost: `python benchmarks/namespaces.py [--votes N] [--forks N] [--data URL] [--writers N…]`.

With this many votes in the namespace `base`: reset, first use, drop and fork, each over HTTP on loopback. Then forks of
an empty namespace, with the memory of each and the processor time of all.

With `--writers`, only: votes of N connections in N namespaces and in one, in turn; creating 100 namespaces
during writes of eight writers that do not pause; and open files with up to 2,000 namespaces.
"""

from __future__ import annotations

import argparse
import asyncio
import http.client
import json
import os
import subprocess
import time
from contextlib import ExitStack
from statistics import median, quantiles

import report
import uvloop
from audience import Newcomers, authorization
from common import Started, memory, processor_time, start_extcli
from load import load, request
from report import Row
from rounds import Case, laboratory, measure

ROUNDS = 200
FORKS = 20
"""Forks of the namespace with votes."""
WRITER_ROUNDS = 5
WRITERS = (16, 48)
OPEN = (250, 1_000, 2_000)
"""Namespaces with which open files are counted."""


class Control:
    """Calls the control API, and times each call in ms."""

    def __init__(self, server: Started) -> None:
        self._http = http.client.HTTPConnection(*server.address)

    def in_use(self) -> int:
        """Return the number of namespaces."""
        self._http.request("GET", "/_ns")
        return len(json.loads(self._http.getresponse().read())["namespaces"])

    def __call__(self, method: str, path: str) -> float:
        began = time.perf_counter()
        self._http.request(method, path)
        answer = self._http.getresponse()
        body = answer.read()
        elapsed = 1_000 * (time.perf_counter() - began)
        if answer.status != 200:
            raise RuntimeError(f"{method} {path}: {answer.status} {json.loads(body)}")
        return elapsed


def show(name: str, times: list[float]) -> None:
    """Print the median and the 99th percentile of times in ms."""
    high = quantiles(times, n=100)[98] if len(times) > 1 else times[0]
    print(f"{name:<52} median {median(times):8.2f} ms   p99 {high:8.2f} ms   n {len(times)}", flush=True)


def votes_in(names: list[str]) -> list[bytes]:
    """Return votes of one user for each namespace, in turn."""
    header = authorization("1")
    return [request("POST", f"/_ns/{name}/v1/e/vote", header, b'{"value":1}') for name in names]


def measure_calls(server: Started, votes: int, forks: int) -> None:
    control = Control(server)
    control("POST", "/_ns/base")
    began = time.perf_counter()
    requests = (each.replace(b" /v1/", b" /_ns/base/v1/", 1) for each in Newcomers().ballots(votes))
    uvloop.run(load([server.address], requests, seconds=600))
    print(f"{votes} votes cast in {time.perf_counter() - began:.1f} s", flush=True)
    for number in range(5):
        control("POST", f"/_ns/warm{number}")
    first_uses, resets, drops = [], [], []
    for number in range(ROUNDS):
        first_uses.append(control("GET", f"/_ns/n{number}/_emulator/clock"))
        resets.append(control("POST", f"/_ns/n{number}/_emulator/reset"))
        drops.append(control("DELETE", f"/_ns/n{number}"))
    show("first use of a namespace, others have the votes", first_uses)
    show("reset of an empty namespace", resets)
    show("drop of an empty namespace", drops)
    copies = [f"copy{number}" for number in range(FORKS)]
    show("fork of the namespace with the votes", [control("POST", f"/_ns/{name}?from=base") for name in copies])
    show("reset of a copy", [control("POST", f"/_ns/{name}/_emulator/reset") for name in copies[::2]])
    show("drop of a copy", [control("DELETE", f"/_ns/{name}") for name in copies[1::2]])
    control("POST", "/_ns/empty")
    before, began, used = memory(server.process), time.perf_counter(), processor_time(server.process)
    times = [control("POST", f"/_ns/f{number}?from=empty") for number in range(forks)]
    seconds, used = time.perf_counter() - began, processor_time(server.process) - used
    each = (memory(server.process) - before) / forks / 1024
    show("fork of an empty namespace", times)
    print(f"{forks} forks: {seconds:.2f} s, {used:.2f} s of processor time, {each:.0f} KiB each")


def writers_rows(server: Started, count: int, rounds: int, seconds: float) -> list[Row]:
    """Compare votes in as many namespaces as writers with votes in one."""
    apart = [f"w{number}" for number in range(count)]
    cases = {"one": Case([server], votes_in(["w0"])), "many": Case([server], votes_in(apart))}
    with ExitStack() as stack:
        results = measure(stack, cases, rounds, seconds, again=["one"], connections=count)
    name = f"votes of {count} writers, each in a namespace / in one"
    return [
        results.rate_row("16", name, "many", "one", 0.8, 0.95),
        results.slowest_row("16", f"slowest vote of {count} writers in {count} namespaces / median", "many", 10, 5),
    ]


def rows(rounds: int, seconds: float) -> list[Row]:
    """Measure goal 16, with the data in a file."""
    with laboratory() as (stack, folder):
        server = start_extcli(stack, "--data", f"sqlite://{folder}/data.db", stderr=subprocess.DEVNULL)
        return [row for count in WRITERS for row in writers_rows(server, count, rounds, seconds)]


def measure_writers(server: Started, writers: list[int]) -> None:
    for count in writers:
        report.show(writers_rows(server, count, WRITER_ROUNDS, 1))
    uvloop.run(_create_beside_writers(server))
    control = Control(server)
    for total in OPEN:
        for number in range(total - control.in_use()):
            control("GET", f"/_ns/of-{total}-{number}/_emulator/clock")
        files = len(os.listdir(f"/proc/{server.process}/fd"))
        print(f"{total} namespaces: {files} open files, {memory(server.process) >> 20} MiB", flush=True)


async def _create_beside_writers(server: Started) -> None:
    writing = asyncio.create_task(
        load([server.address], votes_in([f"w{n}" for n in range(8)]), connections=8, seconds=2)
    )
    control, began = Control(server), time.perf_counter()
    times = [await asyncio.to_thread(control, "POST", f"/_ns/beside{number}") for number in range(100)]
    elapsed = time.perf_counter() - began
    show("create a namespace during 8 writers", times)
    print(f"100 namespaces during 8 writers: {elapsed:.2f} s; {(await writing).per_second:,.0f} votes/s meanwhile")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--votes", type=int, default=100_000)
    parser.add_argument("--forks", type=int, default=1_000)
    parser.add_argument("--data", default="sqlite://")
    parser.add_argument("--writers", type=int, nargs="+", default=[])
    arguments = parser.parse_args()
    with laboratory() as (stack, _):
        server = start_extcli(stack, "--data", arguments.data, stderr=subprocess.DEVNULL)
        if arguments.writers:
            measure_writers(server, arguments.writers)
        else:
            measure_calls(server, arguments.votes, arguments.forks)


if __name__ == "__main__":
    main()
