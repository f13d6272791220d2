"""A wait and the writes that meet it race: the response is never too early, never missing, and soon.

`WAIT_RACES=500 pytest tests/features/test_wait_races.py` runs 500 races of each kind.
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import Any, NamedTuple

import pytest

from support.broadcasts import subscribed_game
from support.pins import create_pin, validate
from support.service import CHANNEL, Client, LiveServer
from support.socket_client import SocketClient

pytestmark = pytest.mark.slow

RACES = int(os.environ.get("WAIT_RACES", "8"))
MOST_CALLS = 4
"""Calls that may delay a wait or a write, so that they meet in any order."""
TIMEOUT = 10
"""Seconds."""


class Race(NamedTuple):
    """One race: the condition, and the writes that together meet it."""

    query: dict[str, object]
    writes: list[Callable[[], object]]


Prepare = Callable[[LiveServer, str, ExitStack], Race]
"""Prepares a race for an extension that no other race uses."""


def client(live: LiveServer, extension: str, role: str = "broadcaster", user: str = CHANNEL) -> Client:
    return live.client(role, user=user, channel=CHANNEL, client_id=extension)


def votes(live: LiveServer, extension: str, stack: ExitStack) -> Race:
    number = random.randint(1, 3)
    voters = [client(live, extension, "viewer", f"U{each}") for each in range(number)]
    writes = [lambda each=each: each.post("vote?id=a", json={"value": 4}) for each in voters]
    return Race({"for": "poll", "id": "a", "count": f"={number}", "value": f"4={number}", "sum": 4 * number}, writes)


def viewer_state(live: LiveServer, extension: str, stack: ExitStack) -> Race:
    viewer = client(live, extension, "viewer", "U7")
    patches = ({"a": 1}, {"b": 2})
    writes = [lambda patch=patch: viewer.patch("viewer_state", json=patch) for patch in patches]
    return Race({"for": "store", "id": "viewer_state", "user": "U7", "equals": '{"b":2,"a":1}'}, writes)


def broadcasts(live: LiveServer, extension: str, stack: ExitStack) -> Race:
    sender = client(live, extension)
    writes = [lambda: sender.post("broadcast", json={"event": "goal", "data": 1})] * 3
    return Race({"for": "broadcast", "id": "goal", "count": 3}, writes)


def used_pin(live: LiveServer, extension: str, stack: ExitStack) -> Race:
    owner = client(live, extension)
    pin = create_pin(owner)
    return Race({"for": "pin", "id": "used"}, [lambda: validate(owner, pin)])


def closed_connections(live: LiveServer, extension: str, stack: ExitStack) -> Race:
    game = SocketClient(live)
    return Race({"for": "sockets", "count": "=0"}, [lambda: game.__exit__(None, None, None)])


def subscriptions(live: LiveServer, extension: str, stack: ExitStack) -> Race:
    game = stack.enter_context(subscribed_game(live, "viewer", extension, user="5"))
    writes = [lambda: game.data("subscribe", "state", {"topic_id": "channel"})]
    return Race({"for": "sockets", "id": "state:channel"}, writes)


def votes_since(live: LiveServer, extension: str, stack: ExitStack) -> Race:
    voter = client(live, extension, "viewer", "U9")
    mark = voter.post("vote?id=a", json={"value": 1}).headers["x-emulator-mark"]
    _, writes = votes(live, extension, stack)
    return Race({"for": "poll", "id": "a", "count": f"={len(writes)}", "since": mark}, writes)


KINDS: tuple[Prepare, ...] = (
    votes, viewer_state, broadcasts, used_pin, closed_connections, subscriptions, votes_since,
)  # fmt: skip


def run(live: LiveServer, race: Race, extension: str, threads: ThreadPoolExecutor) -> tuple[Any, float, float, float]:
    """Run one race; return the response to the wait, and when the last write was sent, answered, and the wait met."""
    query = {"client_id": extension, "channel_id": CHANNEL, "timeout": TIMEOUT * 1000} | race.query

    def delay(client: Client) -> None:
        for _ in range(random.randrange(MOST_CALLS)):
            client.get("/_emulator/live")

    def wait() -> tuple[Any, float]:
        with Client(base_url=live.url) as waiting:
            delay(waiting)
            answer = waiting.get("/_emulator/wait", params=query)
            return answer.raise_for_status().json(), time.perf_counter()

    def write() -> tuple[float, float]:
        sent = 0.0
        with Client(base_url=live.url) as other:
            for each in race.writes:
                delay(other)
                sent = time.perf_counter()
                each()
            return sent, time.perf_counter()

    waiting, writing = threads.submit(wait), threads.submit(write)
    sent, answered = writing.result(20)
    outcome, met = waiting.result(20)
    return outcome, sent, answered, met


@pytest.mark.parametrize("prepare", KINDS, ids=lambda prepare: prepare.__name__)
def test_a_wait_that_races_with_its_writes_is_met_and_never_early(live: LiveServer, prepare: Prepare):
    with ThreadPoolExecutor(2) as threads:
        for number in range(RACES):
            with ExitStack() as stack:
                extension = f"{prepare.__name__}-{number}"
                outcome, sent, answered, met = run(live, prepare(live, extension, stack), extension, threads)
            assert outcome["met"], outcome
            assert sent < met < answered + TIMEOUT / 2
            wait_until_closed(live)


def wait_until_closed(live: LiveServer) -> None:
    """Wait until the sockets of a race are closed, which the next must not count."""
    with Client(base_url=live.url) as waiting:
        query = {"for": "sockets", "count": "=0", "timeout": TIMEOUT * 1000}
        assert waiting.get("/_emulator/wait", params=query).json()["met"]
