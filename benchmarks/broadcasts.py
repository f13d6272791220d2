"""Goals 7 and 8: a game broadcasts an event to many games, all on sockets of one client process.

The servers run on core 0 and the clients on core 1, one server at a time in each round, with equal texts:

service     games that subscribe to an event
websockets  the `websockets` library's server and its `broadcast()`
ws          `peers/ws.js`: the Node library sends each message to each client

Goal 7 is the deliveries per second of a burst of 20 to 1,000 games: once with all messages in one segment, which a
server can answer with one write per game, and once spaced: each message is sent as soon as the first client has
received the one before. Goal 8 is the time until the last client has one broadcast. A round is the median of several
repetitions.

The service receives and answers each broadcast as a request with JSON, and checks it; the others only repeat bytes.
Figures include the processor time of the server per delivery, of which most is the kernel's.
"""

from __future__ import annotations

import gc
import statistics
from contextlib import ExitStack, closing
from dataclasses import replace
from time import perf_counter
from typing import NamedTuple

from audience import authentication
from common import Started, allow_open_files, pin_to_core, processor_time, start, start_server, start_service
from crowd import Crowd, Socket, message
from report import Row, compare

GAMES, MANY_GAMES = 1_000, 5_000
REPEATS = 3


class Burst(NamedTuple):
    """How a number of broadcasts is sent."""

    name: str
    times: int = 1
    spaced: bool = False


ONE = Burst("one broadcast")
IN_ONE_SEGMENT = Burst("20 in one segment", 20)
SPACED = Burst("20 spaced", 20, spaced=True)


class Setup(NamedTuple):
    """The subscribers of a server, and a client that broadcasts to them."""

    server: Started
    crowd: Crowd
    sender: Socket
    request: bytes
    length: int
    """Bytes of the text that each subscriber receives."""

    def last(self, burst: Burst) -> float:
        """Return the median time until the last subscriber had all broadcasts, in seconds."""
        return statistics.median(self._broadcast(burst) for _ in range(REPEATS))

    def _broadcast(self, burst: Burst) -> float:
        started = perf_counter()
        if burst.spaced:
            self.sender.send(self.request)
            ended = self.crowd.wait_for(burst.times, self.length, lambda: self.sender.send(self.request))
        else:
            self.sender.send(*[self.request] * burst.times)
            ended = self.crowd.wait_for(burst.times, self.length)
        for _ in range(burst.times):
            self.sender.message()
        return ended - started


def service(stack: ExitStack, size: int) -> Setup:
    """Open games, and one that broadcasts."""
    server = start_service(stack, "sqlite://")
    requests = (authentication(), message("subscribe", "broadcast", topic_id="hit"))
    crowd = stack.enter_context(closing(Crowd(server.address, size, requests)))
    sender = stack.enter_context(closing(Socket(server.address)))
    sender.finish_handshake()
    request = message("broadcast", topic="hit", data="x" * 100)
    for each in (authentication(), request):
        sender.send(each)
        assert b'"errors"' not in sender.message()
    (length,) = {len(one.message()) for one in crowd.sockets}
    return Setup(server, crowd, sender, request, length)


def reference(stack: ExitStack, name: str, size: int, length: int) -> Setup:
    """Open clients of a server that repeats each text to all, the sender included."""
    server = start(stack, "node", "ws.js", "PORT") if name == "ws" else start_server(stack, name)
    crowd = stack.enter_context(closing(Crowd(server.address, size)))
    sender = stack.enter_context(closing(Socket(server.address)))
    sender.finish_handshake()
    return Setup(server, crowd, sender, b"x" * length, length)


def row_of(goal: str, burst: Burst, size: int, other: str, must: float, stretch: float, rounds: int) -> Row:
    """Compare the service with another server, in turn: the time of one broadcast, or the rate of a burst."""
    is_time = burst is ONE
    found: dict[str, list[float]] = {"service": [], other: [], f"{other} again": []}
    used: dict[str, list[float]] = {name: [] for name in found}
    with ExitStack() as stack:
        ours = service(stack, size)
        theirs = reference(stack, other, size, ours.length)
        for number in range(rounds + 1):
            for name in found:
                setup = ours if name == "service" else theirs
                gc.collect()
                before = processor_time(setup.server.process.pid)
                last = setup.last(burst)
                spent = processor_time(setup.server.process.pid) - before
                if number:  # the first round is a warm-up
                    found[name].append(last * 1e3 if is_time else burst.times * size / last)
                    used[name].append(spent / (REPEATS * burst.times * size) * 1e6)
    title, unit = f"{burst.name} to {size:,} games / {other}", "ms" if is_time else "deliveries/s"
    row = compare(goal, title, found, ("service", other), unit, must, stretch, higher_is_better=not is_time)
    processor = {f"{name} processor µs per delivery": statistics.median(used[name]) for name in ("service", other)}
    return replace(row, figures={**row.figures, **processor})


def rows(rounds: int, seconds: float) -> list[Row]:
    """Measure goals 7 and 8. The time of a round follows from the number of messages, not from `seconds`."""
    allow_open_files()
    pin_to_core(1)
    gc.disable()  # so that the clients do not pause during a measurement
    return [
        row_of("7", IN_ONE_SEGMENT, GAMES, "websockets", 4.0, 8.0, rounds),
        row_of("7", SPACED, GAMES, "websockets", 4.0, 8.0, rounds),
        row_of("8", ONE, GAMES, "ws", 0.9, 0.7, rounds),
        row_of("8", ONE, MANY_GAMES, "ws", 0.6, 0.4, rounds),
    ]
