"""What namespaces cost: `python benchmarks/namespaces.py [--votes N] [--forks N] [--data URL]`.

With so many votes in the namespace `base`: reset, first use, drop and fork, each over HTTP on loopback. Then forks of
an empty namespace, with the memory of each and the processor time of all. The service runs in a thread of this process.
"""

from __future__ import annotations

import argparse
import asyncio
import http.client
import json
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
from emulator.server.http_server import Server, config_of, listen
from emulator.server.run import collect_garbage_less_often

ROUNDS = 200
FORKS = 20
"""Forks of the namespace with votes."""
BATCH = 1_000


class Control:
    """Calls the control API, and times each call in ms."""

    def __init__(self, port: int) -> None:
        self._http = http.client.HTTPConnection("127.0.0.1", port)

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
    front = await app._front("base")
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--votes", type=int, default=100_000)
    parser.add_argument("--forks", type=int, default=1_000)
    parser.add_argument("--data", default="sqlite://")
    arguments = parser.parse_args()
    measure(arguments.votes, arguments.forks, arguments.data)


if __name__ == "__main__":
    main()
