"""Writers go on during a reset and its undo: each acknowledged vote is where its time puts it, and none is lost."""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path

import pytest

from emulator.core.config.settings import Settings
from support.service import Client, LiveServer, live_server

WRITERS = 3
SEEDED = 100
ROUNDS = 2


class Votes:
    """Votes of ever new users by several writers, and all that happened in order."""

    def __init__(self, live: LiveServer) -> None:
        self.live = live
        self.events: list[tuple[str, str]] = []
        """`sent` and `acknowledged` with a user, and `does` and `did` with an operation."""
        self._numbers = count(1)
        self._grown = threading.Condition()

    def write(self, user: str) -> None:
        with self.live.client("viewer", user=user, channel="777") as client:
            self.note("sent", user)
            client.post("vote", json={"value": 1}).raise_for_status()
            self.note("acknowledged", user)

    def note(self, what: str, name: str) -> None:
        with self._grown:
            self.events.append((what, name))
            self._grown.notify_all()

    @contextmanager
    def writing(self) -> Iterator[None]:
        stop = threading.Event()

        def go_on() -> None:
            while not stop.is_set():
                self.write(str(next(self._numbers)))

        threads = [threading.Thread(target=go_on) for _ in range(WRITERS)]
        for each in threads:
            each.start()
        try:
            yield
        finally:
            stop.set()
            for each in threads:
                each.join()

    def wait_for(self, more: int) -> None:
        """Return when this many more votes are acknowledged."""
        with self._grown:
            goal = self._acknowledged() + more
            self._grown.wait_for(lambda: self._acknowledged() >= goal, 60)

    def _acknowledged(self) -> int:
        return sum(what == "acknowledged" for what, _ in self.events)

    def sent_after(self, operation: str) -> set[str]:
        at = self.events.index(("did", operation))
        return {name for what, name in self.events[at:] if what == "sent"}

    def acknowledged_before(self, operation: str) -> set[str]:
        at = self.events.index(("does", operation))
        return {name for what, name in self.events[:at] if what == "acknowledged"}

    def call(self, operation: str) -> None:
        self.note("does", operation)
        with Client(base_url=self.live.url) as client:
            client.post(f"/_emulator/{operation}").raise_for_status()
        self.note("did", operation)

    def found(self) -> set[str]:
        with self.live.client("admin", user="owner", channel="777") as client:
            return {each["identifier"] for each in client.get("vote_logs").raise_for_status().json()["result"]}


@pytest.fixture(params=["memory", "file"])
def votes(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Votes]:
    data = "sqlite://" if request.param == "memory" else f"sqlite://{tmp_path}/data.db"
    with live_server(Settings(data=data)) as live:
        made = Votes(live)
        for number in range(SEEDED):
            made.write(f"seeded-{number}")
        yield made


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(ROUNDS))
def test_each_acknowledged_vote_is_kept_by_undo_or_gone_by_its_time(votes: Votes, seed: int):
    some = random.Random(seed)
    with votes.writing():
        votes.wait_for(some.randrange(5, 50))
        votes.call("reset?undo=60")
        votes.wait_for(some.randrange(5, 50))
        votes.note("does", "look")
        in_between = votes.found()
        votes.call("undo")
        votes.wait_for(some.randrange(5, 50))
    found = votes.found()

    acknowledged = {name for what, name in votes.events if what == "acknowledged"}
    assert set() == votes.acknowledged_before("reset?undo=60") - found
    assert set() == (votes.sent_after("reset?undo=60") & votes.acknowledged_before("undo")) & found
    assert set() == (votes.sent_after("undo") & acknowledged) - found
    # During the reset, a vote is in what is kept, or in what came after it, but never in neither.
    overlapping = votes.acknowledged_before("look") - votes.sent_after("reset?undo=60")
    assert set() == overlapping - found - in_between
