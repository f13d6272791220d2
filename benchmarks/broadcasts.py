"""Broadcasts: `python benchmarks/broadcasts.py [ROUNDS] [SUBSCRIBERS]`.

Prints, for games and for pages with the published SDK, how long one broadcast takes to reach the last of 1,000 and of
SUBSCRIBERS subscribers, and the deliveries per second of a burst of 20. Both are divided by those of the `websockets`
library's server and its `broadcast()`, with the same clients and bytes, in the same rounds. Finally, it prints the
latency of the other subscribers while one never reads, divided by that before.
"""

from __future__ import annotations

import gc
import resource
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from typing import NamedTuple

from common import Address, argument, pin_to_core, start_server
from crowd import Crowd, Socket
from report import ratios, spread
from servers import CLIENT_ID
from sockets import authentication, socket_request

SUBSCRIBERS = 1_000
BURST = 20
STALLED_ROUNDS = 300


class Kind(NamedTuple):
    """A kind of subscriber."""

    path: str
    greetings: int
    """Texts that the server sends first."""
    requests: Sequence[bytes]


class Setup(NamedTuple):
    """The subscribers of a server, and a client that broadcasts to them."""

    crowd: Crowd
    sender: Socket
    request: bytes
    length: int
    """Bytes of the text that each subscriber receives."""

    def broadcast(self, times: int = 1) -> list[float]:
        """Broadcast `times` times; return the seconds until each subscriber had all of them, in order."""
        started = time.perf_counter()
        self.sender.send(*[self.request] * times)
        received = self.crowd.wait_for(times, self.length)
        for _ in range(times):
            self.sender.message()
        return [each - started for each in received]


def kinds(address: Address) -> dict[str, Kind]:
    """Return how games and pages subscribe to the event `hit` of channel 1."""
    channel = f'{{"event":"pusher:subscribe","data":{{"channel":"twitch.pubsub.{CLIENT_ID}.1"}}}}'
    return {
        "games": Kind(
            "/0.2.0/bench", 0, (authentication(address), socket_request("subscribe", "broadcast", topic_id="hit"))
        ),
        "pages": Kind("/app/key?protocol=7", 1, (channel.encode(),)),
    }


@contextmanager
def service(address: Address, kind: Kind, size: int, data: int = 100) -> Iterator[Setup]:
    """Open `size` subscribers of the service, and a game that broadcasts."""
    request = socket_request("broadcast", topic="hit", data="x" * data)
    with (
        closing(Crowd(address, size, kind.requests, path=kind.path, greetings=kind.greetings)) as crowd,
        closing(Socket(address)) as sender,
    ):
        sender.finish_handshake()
        sender.send(authentication(address), request)
        for _ in range(2):
            assert b'"errors"' not in sender.message()
        (length,) = {len(one.message()) for one in crowd.sockets}
        yield Setup(crowd, sender, request, length)


@contextmanager
def reference(address: Address, path: str, size: int, length: int) -> Iterator[Setup]:
    """Open `size` clients of the library's server, which repeats each text to all, the sender included."""
    with closing(Crowd(address, size, path=path)) as crowd, closing(Socket(address)) as sender:
        sender.finish_handshake()
        yield Setup(crowd, sender, b"x" * length, length)


def compare(name: str, size: int, rounds: int) -> None:
    """Measure one broadcast and a burst on both servers in turn."""
    with ExitStack() as stack:
        address, _ = start_server(stack, "sockets")
        other, _ = start_server(stack, "websockets")
        kind = kinds(address)[name]
        ours = stack.enter_context(service(address, kind, size))
        theirs = stack.enter_context(reference(other, kind.path, size, ours.length))
        results: dict[tuple[str, int], list[float]] = {}
        for number in range(rounds + 2):
            for which, setup in (("ours", ours), ("theirs", theirs)):
                for times in (1, BURST):
                    gc.collect()
                    last = setup.broadcast(times)[-1]
                    if number > 1:
                        results.setdefault((which, times), []).append(last)
    one, burst = (ratios(results["ours", times], results["theirs", times]) for times in (1, BURST))
    print(
        f"{size:,} {name}, one broadcast: last after {spread([each * 1e3 for each in results['ours', 1]], '.1f')} ms; "
        f"/ websockets.broadcast(): {spread(one)}"
    )
    rates = spread([BURST * size / each for each in results["ours", BURST]], ",.0f")
    print(
        f"{size:,} {name}, {BURST} at once: {rates} deliveries/s; "
        f"/ websockets.broadcast(): {spread([1 / each for each in burst])}"
    )


def compare_with_stalled_subscriber(name: str) -> None:
    """Compare the latency of the other subscribers before and while one never reads."""
    with ExitStack() as stack:
        address, _ = start_server(stack, "sockets")
        kind = kinds(address)[name]
        setup = stack.enter_context(service(address, kind, SUBSCRIBERS, 4_000))

        def latencies() -> list[float]:
            return sorted(each for _ in range(STALLED_ROUNDS) for each in setup.broadcast())

        latencies()
        before = latencies()
        stalled = stack.enter_context(closing(Socket(address, 4_096, kind.path)))
        stalled.finish_handshake()
        for request in kind.requests:
            stalled.send(request)
        for _ in range(len(kind.requests) + kind.greetings):
            stalled.message()
        during = latencies()
    at = int(len(before) * 0.99)
    print(
        f"{SUBSCRIBERS:,} {name}, p99 while one never reads / before: {during[at] / before[at]:.2f} "
        f"({during[at] * 1e3:.1f} / {before[at] * 1e3:.1f} ms)"
    )


def main() -> None:
    rounds, most = int(argument(1, 15)), int(argument(2, 5_000))
    _, files = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (files, files))
    pin_to_core(1)
    gc.disable()  # so that the clients do not pause during a measurement
    for name in ("games", "pages"):
        for size in (SUBSCRIBERS, most):
            compare(name, size, rounds)
    for name in ("games", "pages"):
        compare_with_stalled_subscriber(name)


if __name__ == "__main__":
    main()
