"""Broadcasts: `python benchmarks/broadcasts.py [ROUNDS] [MOST]`.

Prints, for games and for pages of the published SDK, how long one broadcast takes to reach the last of 1,000 and of
MOST subscribers, and how many deliveries a second a burst of 20 makes; and both against the `websockets` library's own
server and `broadcast()`, with the same clients, the same bytes and in the same rounds. Ratios count so that more is
better for deliveries, and less for times. Last, the latency of the others beside a subscriber that never reads.
"""

from __future__ import annotations

import gc
import os
import resource
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from typing import NamedTuple

from crowd import Crowd, Socket
from servers import CLIENT_ID
from sockets import Place, ask, authentication, median, start

FAN = 1_000
BURST = 20
STALLED_ROUNDS = 300


class Kind(NamedTuple):
    """Subscribers of one kind."""

    path: str
    greetings: int
    """Texts that come before any is sent."""
    asks: Sequence[bytes]


class Rival(NamedTuple):
    """A server with its subscribers, and one who speaks to them."""

    crowd: Crowd
    speaker: Socket
    said: bytes
    length: int
    """Bytes of the text that each subscriber hears."""

    def broadcast(self, times: int = 1) -> list[float]:
        """Say it so many times; returns when each subscriber had heard all, in order, in seconds from the beginning."""
        began = time.perf_counter()
        self.speaker.send(*[self.said] * times)
        heard = self.crowd.hear(times, self.length)
        for _ in range(times):
            self.speaker.message()
        return [each - began for each in heard]


def kinds(place: Place) -> dict[str, Kind]:
    """How games and pages follow the event `hit` of channel 1."""
    channel = f'{{"event":"pusher:subscribe","data":{{"channel":"twitch.pubsub.{CLIENT_ID}.1"}}}}'
    return {
        "games": Kind("/0.2.0/bench", 0, (authentication(place), ask("subscribe", "broadcast", topic_id="hit"))),
        "pages": Kind("/app/key?protocol=7", 1, (channel.encode(),)),
    }


@contextmanager
def service(place: Place, kind: Kind, size: int, data: int = 100) -> Iterator[Rival]:
    """The service with so many subscribers of a kind, and a game that broadcasts."""
    said = ask("broadcast", topic="hit", data="x" * data)
    with (
        closing(Crowd(place, size, kind.asks, path=kind.path, greetings=kind.greetings)) as crowd,
        closing(Socket(place)) as speaker,
    ):
        speaker.shaken()
        speaker.send(authentication(place), said)
        for _ in range(2):
            assert b'"errors"' not in speaker.message()
        (length,) = {len(one.message()) for one in crowd.sockets}
        yield Rival(crowd, speaker, said, length)


@contextmanager
def reference(place: Place, path: str, size: int, length: int) -> Iterator[Rival]:
    """The library's server, which repeats to as many what it hears, to the speaker too."""
    with closing(Crowd(place, size, path=path)) as crowd, closing(Socket(place)) as speaker:
        speaker.shaken()
        yield Rival(crowd, speaker, b"x" * length, length)


def compare(name: str, size: int, rounds: int) -> None:
    """One broadcast and a burst, of both servers in turn."""
    with ExitStack() as stack:
        place, _ = start(stack, "sockets")
        other, _ = start(stack, "websockets")
        kind = kinds(place)[name]
        mine = stack.enter_context(service(place, kind, size))
        theirs = stack.enter_context(reference(other, kind.path, size, mine.length))
        results: dict[tuple[str, int], list[float]] = {}
        for number in range(rounds + 2):
            for which, rival in (("mine", mine), ("theirs", theirs)):
                for times in (1, BURST):
                    gc.collect()
                    last = rival.broadcast(times)[-1]
                    if number > 1:
                        results.setdefault((which, times), []).append(last)
    one, burst = (
        [ours / of_other for ours, of_other in zip(results["mine", times], results["theirs", times], strict=True)]
        for times in (1, BURST)
    )
    print(
        f"{size:,} {name}, one broadcast: last after {median([each * 1e3 for each in results['mine', 1]], '.1f')} ms; "
        f"/ websockets.broadcast(): {median(one)}"
    )
    rates = median([BURST * size / each for each in results["mine", BURST]], ",.0f")
    print(
        f"{size:,} {name}, {BURST} at once: {rates} deliveries/s; "
        f"/ websockets.broadcast(): {median([1 / each for each in burst])}"
    )


def beside_a_stalled_one(name: str) -> None:
    """Latencies of all others, before and while one of the subscribers does not read."""
    with ExitStack() as stack:
        place, _ = start(stack, "sockets")
        kind = kinds(place)[name]
        rival = stack.enter_context(service(place, kind, FAN, 4_000))

        def latencies() -> list[float]:
            return sorted(each for _ in range(STALLED_ROUNDS) for each in rival.broadcast())

        latencies()
        before = latencies()
        stalled = stack.enter_context(closing(Socket(place, 4_096, kind.path)))
        stalled.shaken()
        for one in kind.asks:
            stalled.send(one)
        for _ in range(len(kind.asks) + kind.greetings):
            stalled.message()
        beside = latencies()
    at = int(len(before) * 0.99)
    print(
        f"{FAN:,} {name}, p99 beside one that never reads / before: {beside[at] / before[at]:.2f} "
        f"({beside[at] * 1e3:.1f} / {before[at] * 1e3:.1f} ms)"
    )


def main() -> None:
    """Measure and report."""
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 15
    most = int(sys.argv[2]) if len(sys.argv) > 2 else 5_000
    _, files = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (files, files))
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {1})
    gc.disable()  # a collection in the midst of a measurement is not the server's
    for name in ("games", "pages"):
        for size in (FAN, most):
            compare(name, size, rounds)
    for name in ("games", "pages"):
        beside_a_stalled_one(name)


if __name__ == "__main__":
    main()
