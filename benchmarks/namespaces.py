"""What namespaces cost: `python benchmarks/namespaces.py [--votes N] [--forks N] [--data URL] [--writers N…]`.

With so many votes in the namespace `base`: reset, first use, drop and fork, each over HTTP on loopback. Then forks of
an empty namespace, with the memory of each and the processor time of all. The service runs in a thread of this process.

With `--writers`, only: so many writers in as many namespaces and in one, in rounds that alternate; creating 100
namespaces beside eight writers that do not pause; and open files with up to 2,000 namespaces.
"""

from __future__ import annotations

import argparse
import asyncio
import http.client
import json
import os
import resource
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from statistics import median, quantiles
from typing import Any

import uvloop

from emulator.config.settings import Settings
from emulator.engines.base import CastRequest, Key
from emulator.opening import open_app
from emulator.process.garbage import collect_garbage_less_often
from emulator.process.http_server import Server, config_of, listen

ROUNDS = 200
FORKS = 20
"""Forks of the namespace with votes."""
BATCH = 1_000
WRITER_ROUNDS = 5
OPEN = (250, 1_000, 2_000)
"""Namespaces with which open files are counted."""


class Control:
    """Calls the control API, and times each call in ms."""

    def __init__(self, port: int) -> None:
        self._http = http.client.HTTPConnection("127.0.0.1", port)

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


@contextmanager
def service(data: str) -> Iterator[tuple[Control, Callable[[Any], Any], Any]]:
    """Run a service; yield its control API, a function that runs a coroutine in its loop, and its application."""
    listener = listen("127.0.0.1", 0)
    ready = threading.Event()
    started: list[tuple[Any, Server, asyncio.AbstractEventLoop]] = []

    async def serve() -> None:
        settings = Settings(data=data)
        collect_garbage_less_often()
        async with open_app(settings) as (app, _):
            server = Server(config_of(app, settings.proxies), ready.set, timeout=settings.limits.request_timeout)
            started.append((app, server, asyncio.get_running_loop()))
            await server.serve([listener])

    thread = threading.Thread(target=lambda: uvloop.run(serve()), daemon=True)
    thread.start()
    ready.wait(30)
    app, server, loop = started[0]
    try:
        yield (
            Control(listener.getsockname()[1]),
            lambda work: asyncio.run_coroutine_threadsafe(work, loop).result(),
            app,
        )
    finally:
        server.should_exit = True
        thread.join(10)


async def fill(app: Any, votes: int) -> None:
    """Cast votes directly into the engine, for one poll of the namespace `base`."""
    front = await app._registry.front("base")
    engine = front._service.engine
    now = time.time_ns() // 1_000_000
    for first in range(0, votes, BATCH):
        numbers = range(first, min(first + BATCH, votes))
        casts = [
            CastRequest(f"U{number}", str(number % 10), b'{"identifier":"U%d","value":1}' % number, whole=True)
            for number in numbers
        ]
        key = Key("poll", "bench", "large", "1")
        await asyncio.gather(*(engine.ballots.cast(key, cast, now=now, expires_at=now + 10**9) for cast in casts))


def show(name: str, times: list[float]) -> None:
    """Print the median and the 99th percentile of times in ms."""
    high = quantiles(times, n=100)[98] if len(times) > 1 else times[0]
    print(f"{name:<52} median {median(times):8.2f} ms   p99 {high:8.2f} ms   n {len(times)}", flush=True)


def resident() -> int:
    """Return the resident memory of this process in bytes."""
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[1]) * resource.getpagesize()


def measure(votes: int, forks: int, data: str) -> None:
    with service(data) as (control, run, app):
        control("POST", "/_ns/base")
        began = time.perf_counter()
        run(fill(app, votes))
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
        before, began, used = resident(), time.perf_counter(), time.process_time()
        times = [control("POST", f"/_ns/f{number}?from=empty") for number in range(forks)]
        seconds, used = time.perf_counter() - began, time.process_time() - used
        each = (resident() - before) / forks / 1024
        show("fork of an empty namespace", times)
        print(f"{forks} forks: {seconds:.2f} s, {used:.2f} s of processor time, {each:.0f} KiB each")


async def write_while(goes_on: Callable[[], bool], engine: Any, writer: int) -> list[float]:
    """Vote without a pause; return the ms that each vote took."""
    now, times = time.time_ns() // 1_000_000, []
    key = Key("poll", "bench", f"writer {writer}", "1")
    while goes_on():
        began = time.perf_counter()
        cast = CastRequest(f"U{len(times) % 1_000}", str(len(times) % 10), b"{}", whole=True)
        await engine.ballots.cast(key, cast, now=now, expires_at=now + 10**9, tally=True)
        times.append(1_000 * (time.perf_counter() - began))
    return times


async def compete(app: Any, names: list[str], goes_on: Callable[[], bool]) -> list[list[float]]:
    """Write in these namespaces at once; return the ms of each writer's votes."""
    engines = [(await app._registry.front(name))._service.engine for name in names]
    return await asyncio.gather(*(write_while(goes_on, engine, number) for number, engine in enumerate(engines)))


def measure_writers(writers: list[int], data: str) -> None:
    with service(data) as (control, run, app):
        for count in writers:
            measure_rounds(count, app, run)
        is_busy = True
        votes: list[list[float]] = []
        names = [f"w{number}" for number in range(8)]
        busy = threading.Thread(target=lambda: votes.extend(run(compete(app, names, lambda: is_busy))))
        busy.start()
        began = time.perf_counter()
        times = [control("POST", f"/_ns/beside{number}") for number in range(100)]
        elapsed = time.perf_counter() - began
        is_busy = False
        busy.join()
        show("create a namespace beside 8 writers", times)
        print(f"100 namespaces beside 8 writers: {elapsed:.2f} s; {sum(map(len, votes)):,} votes meanwhile", flush=True)
        for total in OPEN:
            for number in range(total - control.in_use()):
                control("GET", f"/_ns/of-{total}-{number}/_emulator/clock")
            print(
                f"{total} namespaces: {len(os.listdir('/proc/self/fd'))} open files, {resident() >> 20} MiB", flush=True
            )


def measure_rounds(count: int, app: Any, run: Callable[[Any], Any]) -> None:
    """Compare so many writers in as many namespaces with the same in one."""
    together, apart = ["w0"] * count, [f"w{number}" for number in range(count)]
    ratios, rates, slowest, slowest_in_one, least = [], [], [], [], []
    processor: list[float] = []
    """µs of processor time per vote, by turns in one namespace and in many."""
    for _ in range(WRITER_ROUNDS):
        done, waits = [], []
        for names in (together, apart):
            end, used = time.perf_counter() + 1, time.process_time()
            times = run(compete(app, names, lambda end=end: time.perf_counter() < end))
            done.append(sum(map(len, times)))
            processor.append(1e6 * (time.process_time() - used) / done[-1])
            every = [one for each in times for one in each]
            waits.append(max(every) / median(every))
        ratios.append(done[1] / done[0])
        rates.append(done[1])
        slowest.append(waits[1])
        slowest_in_one.append(waits[0])
        least.append(min(map(len, times)) / max(map(len, times)))
    print(
        f"{count} writers in {count} namespaces: {median(rates):,.0f} votes/s, {median(ratios):.2f} of those in one "
        f"({min(ratios):.2f}-{max(ratios):.2f}); slowest call {median(slowest):.1f} medians "
        f"({min(slowest):.1f}-{max(slowest):.1f}), in one {median(slowest_in_one):.1f}; "
        f"slowest writer {min(least):.2f} of the fastest; processor time of a "
        f"vote {median(processor[1::2]):.0f} µs, in one namespace {median(processor[::2]):.0f} µs",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--votes", type=int, default=100_000)
    parser.add_argument("--forks", type=int, default=1_000)
    parser.add_argument("--data", default="sqlite://")
    parser.add_argument("--writers", type=int, nargs="+", default=[])
    arguments = parser.parse_args()
    if arguments.writers:
        measure_writers(arguments.writers, arguments.data)
        return
    measure(arguments.votes, arguments.forks, arguments.data)


if __name__ == "__main__":
    main()
