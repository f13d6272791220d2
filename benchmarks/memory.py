"""Memory per thing: `python benchmarks/memory.py [N] [CODES]`.

For each kind of thing, starts `extcli serve --production` with data in a file, and adds some: `N` tokens, 10,000 by
default, `N` voters, `N`/5 sockets of each kind, or `CODES` reward codes, 8 million by default. Prints the bytes per
thing: what Python's allocator and the C library have handed out, and what is resident. Stored codes are in the file
alone; what they leave in memory is the cache of its pages, which is full after 3 million.
"""

from __future__ import annotations

import os
import re
import resource
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import uvloop
from audience import Newcomers, authorization
from broadcasts import kinds
from codes import body_of, send
from common import argument, memory
from crowd import Crowd
from load import load, request
from nodes import start_on_file

REPORTER = """
import ctypes, gc, signal, sys
class Info(ctypes.Structure):
    _fields_ = [(name, ctypes.c_size_t) for name in "arena ordblks smblks hblks hblkhd usmblks fsmblks uordblks "
                "fordblks keepcost".split()]
def report(*_):
    gc.collect()
    library = ctypes.CDLL(None)
    library.mallinfo2.restype = Info
    sys._debugmallocstats()
    info = library.mallinfo2()
    print("in use by the C library:", info.uordblks + info.hblkhd, file=sys.stderr, flush=True)
signal.signal(signal.SIGUSR2, report)
"""
"""A module that Python imports as it starts: at SIGUSR2, it prints what the allocators have handed out."""
WARM_UP = 300
"""Of each thing, so that modules and tables are there before the first measurement."""
USERS = 100


class Service:
    """`extcli serve`, and what it uses."""

    def __init__(self, stack: ExitStack) -> None:
        folder = Path(stack.enter_context(TemporaryDirectory()))
        (folder / "sitecustomize.py").write_text(REPORTER)
        self._report = folder / "report"
        errors = stack.enter_context(self._report.open("w"))
        unlimited = ("connections", "sockets", "pages", "kib")
        limits = (*(part for name in unlimited for part in (f"--address-{name}", 0)), "--max-unauthenticated", 0)
        more = (*limits, "--max-sockets", 1_000_000)
        environment = os.environ | {"PYTHONPATH": str(folder)}
        self.newcomers = Newcomers()
        self.started = start_on_file(stack, folder, *more, env=environment, stderr=errors)

    def used(self) -> tuple[int, int]:
        """Return the bytes that are allocated, and those that are resident."""
        seen = self._report.stat().st_size
        os.kill(self.started.process, signal.SIGUSR2)
        while not (found := re.findall(r"in use by the C library: (\d+)\n", self._report.read_text()[seen:])):
            time.sleep(0.1)
        blocks = re.findall(r"# bytes in allocated blocks += +([\d,]+)", self._report.read_text()[seen:])
        return int(found[0]) + int(blocks[0].replace(",", "")), memory(self.started.process)

    def call(self, requests: Iterator[bytes]) -> None:
        """Send requests, each of which must succeed."""
        measured = uvloop.run(load([self.started.address], requests, connections=8, seconds=600))
        assert not measured.failed, measured


Adding = Callable[[Service, ExitStack, int, int], None]
"""Adds things, given the number of the first one and how many."""


def open_sockets(kind: str, service: Service, stack: ExitStack, first: int, size: int) -> None:
    """Open sockets of games or pages, which stay open until the stack closes."""
    address, found = service.started.address, kinds(service.started.address)[kind]
    crowd = Crowd(address, size, found.requests[:1], path=found.path, greetings=found.greetings)
    stack.callback(crowd.close)
    stack.callback(crowd.drain)  # fails if the service has closed one meanwhile


def add_tokens(service: Service, _: ExitStack, first: int, size: int) -> None:
    """Read a store with new tokens of a few users, so that nothing else is remembered."""
    headers = (authorization(str(10_000_000 + n % USERS), lifetime=86_400 + n) for n in range(first, first + size))
    service.call(request("GET", "/v1/e/channel_state", header) for header in headers)


def add_voters(service: Service, _: ExitStack, first: int, size: int) -> None:
    """Vote with new tokens of as many new users."""
    service.call(iter(service.newcomers.ballots(size)))


def add_codes(service: Service, _: ExitStack, first: int, size: int) -> None:
    """Upload a list of codes in ten sets, in place of the one before."""
    body = b"".join(body_of(size // 10, 10))
    uvloop.run(send(service.started.address, "PUT", "/v1/e/codes", authorization("1", "backend"), body))


def main() -> None:
    size, codes = int(argument(1, 10_000)), int(argument(2, 8_000_000))
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    things: dict[str, tuple[Adding, int]] = {
        "open socket of a game": (partial(open_sockets, "games"), size // 5),
        "open socket of a page": (partial(open_sockets, "pages"), size // 5),
        "remembered token": (add_tokens, size),
        "voter with a new token": (add_voters, size),
        "stored code": (add_codes, codes),
    }
    print("| Bytes per | Number | Allocated | Resident |\n|---|---:|---:|---:|")
    for name, (add, number) in things.items():
        with ExitStack() as stack:
            service = Service(stack)
            add(service, stack, 0, WARM_UP)
            before = service.used()
            add(service, stack, WARM_UP, number)
            allocated, resident = ((b - a) / number for a, b in zip(before, service.used(), strict=True))
            print(f"| {name} | {number:,} | {allocated:,.0f} | {resident:,.0f} |", flush=True)


if __name__ == "__main__":
    main()
