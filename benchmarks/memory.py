"""Memory per thing: `python benchmarks/memory.py [N] [CODES]`.

For each kind of thing, starts the service with data in a file, and adds some: `N` tokens, 10,000 by default, `N`
voters, `N`/5 sockets of each kind, or `CODES` reward codes, 8 million by default. Prints the bytes of resident memory
per thing. Stored codes are in the file alone; what they leave in memory is the cache of its pages, which is full after
3 million.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import uvloop
from audience import Newcomers, authentication, authorization
from codes import body_of, upload
from common import CLIENT_ID, Started, allow_open_files, argument, memory, start_service
from crowd import GAME, Crowd
from load import load, request

WARM_UP = 300
"""Of each thing, so that modules and tables are there before the first measurement."""
USERS = 100
NEWCOMERS = Newcomers()
Adding = Callable[[Started, ExitStack, int, int], object]
"""Adds things, given the number of the first one and how many."""


def call(service: Started, requests: Iterator[bytes]) -> None:
    """Send requests, each of which must succeed."""
    measured = uvloop.run(load([service.address], requests, connections=8, seconds=600))
    assert not measured.failed, measured


def open_sockets(path: str, greetings: int, service: Started, stack: ExitStack, first: int, size: int) -> None:
    """Open sockets of games or pages, which stay open until the stack closes."""
    data = f'{{"channel":"twitch.pubsub.{CLIENT_ID}.1","auth":"{authorization("1")}"}}'
    subscription = f'{{"event":"pusher:subscribe","data":{data}}}'.encode()
    requests = [subscription if greetings else authentication()]
    crowd = Crowd(service.address, size, requests, path=path, greetings=greetings)
    stack.callback(crowd.close)
    stack.callback(crowd.drain)  # fails if the service has closed one meanwhile


def add_tokens(service: Started, _: ExitStack, first: int, size: int) -> None:
    """Read a store with new tokens of a few users, so that nothing else is remembered."""
    headers = (authorization(str(10_000_000 + n % USERS), lifetime=86_400 + n) for n in range(first, first + size))
    call(service, (request("GET", "/v1/e/channel_state", header) for header in headers))


def add_voters(service: Started, _: ExitStack, first: int, size: int) -> None:
    """Vote with new tokens of as many new users."""
    call(service, iter(NEWCOMERS.ballots(size)))


def add_codes(service: Started, stack: ExitStack, first: int, size: int) -> None:
    """Upload a list of codes in ten sets, in place of the one before."""
    body = Path(stack.enter_context(TemporaryDirectory()), "codes.json")
    body.write_bytes(b"".join(body_of(size // 10)))
    uvloop.run(upload(service.address, body))


def main() -> None:
    size, codes = int(argument(1, 10_000)), int(argument(2, 8_000_000))
    allow_open_files()
    things: dict[str, tuple[Adding, int]] = {
        "open socket of a game": (partial(open_sockets, GAME, 0), size // 5),
        "open socket of a page": (partial(open_sockets, "/app/key?protocol=7", 1), size // 5),
        "remembered token": (add_tokens, size),
        "voter with a new token": (add_voters, size),
        "stored code": (add_codes, codes),
    }
    print("| Bytes of memory per | Number | |\n|---|---:|---:|")
    for name, (add, number) in things.items():
        with ExitStack() as stack:
            folder = stack.enter_context(TemporaryDirectory())
            service = start_service(stack, f"sqlite://{folder}/data.db")
            add(service, stack, 0, WARM_UP)
            before = memory(service.process.pid)
            add(service, stack, WARM_UP, number)
            print(f"| {name} | {number:,} | {(memory(service.process.pid) - before) / number:,.0f} |", flush=True)


if __name__ == "__main__":
    main()
