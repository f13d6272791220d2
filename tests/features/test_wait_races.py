"""A wait and the writes that meet it race: the response is never too early, never missing, and soon.

`WAIT_RACES=500 pytest -s tests/features/test_wait_races.py` runs 500 races of each kind, and prints and checks how long
after the response to the last write a wait is answered. It wants a quiet machine.
"""

from __future__ import annotations

import os
import random
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import Any, NamedTuple

import pytest

from support.broadcasts import subscribed_game
from support.pins import create_pin, validate
from support.pusher_client import PusherClient
from support.service import CHANNEL, Client, LiveServer
from support.socket_client import SocketClient

pytestmark = pytest.mark.slow

GIVEN = os.environ.get("WAIT_RACES")
RACES = int(GIVEN or "8")
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


def answers(live: LiveServer, extension: str, stack: ExitStack) -> Race:
    users = [client(live, extension, "viewer", f"U{each}") for each in range(2)]
    writes = [lambda each=each: each.post("rank?id=a", json={"key": "blue"}) for each in users]
    return Race({"for": "rank", "id": "a", "key": "blue", "score": 2}, writes)


def entries(live: LiveServer, extension: str, stack: ExitStack) -> Race:
    poster = client(live, extension)
    writes = [lambda number=number: poster.post("accumulate?id=a", json={"n": number}) for number in range(2)]
    return Race({"for": "accumulate", "id": "a", "count": 2, "latest": '{"n":1}'}, writes)


def state(live: LiveServer, extension: str, stack: ExitStack) -> Race:
    admin = client(live, extension, "admin")
    writes = [lambda number=number: admin.post("extension_state", json={"a": [number]}) for number in range(2)]
    return Race({"for": "store", "id": "extension_state", "path": "/a/0", "equals": 1}, writes)


def viewer_state(live: LiveServer, extension: str, stack: ExitStack) -> Race:
    viewer = client(live, extension, "viewer", "U7")
    patches = ({"a": 1}, {"b": 2})
    writes = [lambda patch=patch: viewer.patch("viewer_state", json=patch) for patch in patches]
    return Race({"for": "store", "id": "viewer_state", "user": "U7", "equals": '{"b":2,"a":1}'}, writes)


def json_store(live: LiveServer, extension: str, stack: ExitStack) -> Race:
    writer = client(live, extension)
    writes = [lambda value=value: writer.post("json_store?id=a", json={"a": value}) for value in (True, 1)]
    return Race({"for": "json_store", "id": "a", "path": "/a", "equals": 1}, writes)


def broadcasts(live: LiveServer, extension: str, stack: ExitStack) -> Race:
    sender = client(live, extension)
    writes = [lambda: sender.post("broadcast", json={"event": "goal", "data": 1})] * 3
    return Race({"for": "broadcast", "id": "goal", "count": 3}, writes)


def issued_pin(live: LiveServer, extension: str, stack: ExitStack) -> Race:
    return Race({"for": "pin", "id": "issued"}, [lambda: create_pin(client(live, extension))])


def used_pin(live: LiveServer, extension: str, stack: ExitStack) -> Race:
    owner = client(live, extension)
    pin = create_pin(owner)
    return Race({"for": "pin", "id": "used"}, [lambda: validate(owner, pin)])


def revoked_pin(live: LiveServer, extension: str, stack: ExitStack) -> Race:
    return Race({"for": "pin", "id": "revoked"}, [lambda: client(live, extension).delete("pin")])


def connections(live: LiveServer, extension: str, stack: ExitStack) -> Race:
    return Race({"for": "sockets", "count": 1}, [lambda: stack.enter_context(SocketClient(live))])


def closed_connections(live: LiveServer, extension: str, stack: ExitStack) -> Race:
    game = SocketClient(live)
    return Race({"for": "sockets", "count": "=0"}, [lambda: game.__exit__(None, None, None)])


def subscriptions(live: LiveServer, extension: str, stack: ExitStack) -> Race:
    game = stack.enter_context(subscribed_game(live, "viewer", extension, user="5"))
    writes = [lambda: game.data("subscribe", "state", {"topic_id": "channel"})]
    return Race({"for": "sockets", "id": "state:channel"}, writes)


def pages(live: LiveServer, extension: str, stack: ExitStack) -> Race:
    page = stack.enter_context(PusherClient(live))
    channel = f"twitch.pubsub.{extension}.{CHANNEL}"
    return Race({"for": "sockets", "id": "page"}, [lambda: page.send("pusher:subscribe", {"channel": channel})])


def votes_since(live: LiveServer, extension: str, stack: ExitStack) -> Race:
    voter = client(live, extension, "viewer", "U9")
    mark = voter.post("vote?id=a", json={"value": 1}).headers["x-emulator-mark"]
    _, writes = votes(live, extension, stack)
    return Race({"for": "poll", "id": "a", "count": f"={len(writes)}", "since": mark}, writes)


KINDS: tuple[Prepare, ...] = (
    votes, answers, entries, state, viewer_state, json_store, broadcasts, issued_pin, used_pin, revoked_pin,
    connections, closed_connections, subscriptions, pages, votes_since,
)  # fmt: skip


class Times(NamedTuple):
    """When a race did what, in seconds."""

    last_sent: float
    last_answered: float
    asked: float
    met: float

    @property
    def late(self) -> float:
        """Ms from when the condition was true and asked for to the response."""
        return (self.met - max(self.asked, self.last_answered)) * 1000


def run(live: LiveServer, race: Race, extension: str, threads: ThreadPoolExecutor) -> tuple[Any, Times]:
    """Run one race; return the response to the wait, and the times."""
    query = {"client_id": extension, "channel_id": CHANNEL, "timeout": TIMEOUT * 1000} | race.query

    def delay(client: Client) -> None:
        for _ in range(random.randrange(MOST_CALLS)):
            client.get("/_emulator/live")

    def wait() -> tuple[Any, float, float]:
        with Client(base_url=live.url) as waiting:
            delay(waiting)
            asked = time.perf_counter()
            answer = waiting.get("/_emulator/wait", params=query)
            return answer.raise_for_status().json(), asked, time.perf_counter()

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
    outcome, asked, met = waiting.result(20)
    return outcome, Times(sent, answered, asked, met)


@pytest.mark.parametrize("prepare", KINDS, ids=lambda prepare: prepare.__name__)
def test_a_wait_that_races_with_its_writes_is_met_and_never_early(live: LiveServer, prepare: Prepare):
    times = []
    with ThreadPoolExecutor(2) as threads:
        for number in range(RACES):
            with ExitStack() as stack:
                extension = f"{prepare.__name__}-{number}"
                outcome, taken = run(live, prepare(live, extension, stack), extension, threads)
            assert outcome["met"], outcome
            times.append(taken)
            wait_until_closed(live)

    assert [] == [each for each in times if not each.last_sent < each.met < each.last_answered + TIMEOUT / 2]
    if GIVEN:
        late = sorted(each.late for each in times)
        median, p99 = (late[len(late) * each // 100] for each in (50, 99))
        sys.stdout.write(
            f"{prepare.__name__}: {RACES} races, answered {median:.1f} ms after the write, p99 {p99:.1f}\n"
        )
        assert p99 <= 20


def wait_until_closed(live: LiveServer) -> None:
    """Wait until the sockets of a race are closed, which the next must not count."""
    with Client(base_url=live.url) as waiting:
        query = {"for": "sockets", "count": "=0", "timeout": TIMEOUT * 1000}
        assert waiting.get("/_emulator/wait", params=query).json()["met"]
