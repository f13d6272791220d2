"""The directory of users knows a user as long as they may have data, and no longer (ruling A3)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from emulator.core.clock import DAY, Clock
from emulator.core.config.settings import Settings
from emulator.features.directory import LIFETIME
from engines.redis_server import RedisServer
from support.codes import define, eligible, grant
from support.service import CHANNEL, Client, LiveServer, in_production, live_server

OPAQUE, SHARED = "UOPAQUE", "5"
FAR = 90_000_000_000
"""An `exp` that no test reaches."""


@pytest.fixture
def live(running: tuple[LiveServer, Clock]) -> LiveServer:
    return running[0]


@pytest.fixture(params=["sandbox", "production", pytest.param("redis", marks=pytest.mark.slow)])
def running(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[LiveServer, Clock]]:
    """A service, and its clock."""
    clock = Clock()
    clock.freeze(True)
    with ExitStack() as stack:
        settings = Settings() if request.param == "sandbox" else in_production()
        if request.param == "redis":
            settings = in_production(data=stack.enter_context(RedisServer(tmp_path)).url())
        yield stack.enter_context(live_server(settings, clock=clock)), clock


class Viewer:
    """One viewer's clients: before sharing their id, after, and with the shared id only."""

    def __init__(self, live: LiveServer) -> None:
        self.anonymous, self.sharing, self.named = (
            live.client("viewer", channel=CHANNEL, opaque=opaque, user=user, exp=FAR)
            for opaque, user in ((OPAQUE, None), (OPAQUE, SHARED), (None, SHARED))
        )


def vote(client: Client, poll: str = "lunch") -> int:
    """Vote, and return the votes of the poll."""
    return int(client.post("vote", params={"id": poll}, json={"value": 1}).raise_for_status().json()["count"])


def later(running: tuple[LiveServer, Clock], ms: int) -> None:
    """Move the clock, and remove what has expired."""
    live, clock = running
    clock.advance(ms)
    live.run(live.service.control.sweep())


@pytest.mark.parametrize("token", ["sharing", "named"])
def test_a_user_is_one_person_for_90_days_after_their_last_write(
    running: tuple[LiveServer, Clock], live: LiveServer, token: str
):
    viewer = Viewer(live)
    vote(viewer.sharing)
    for _ in range(3):
        later(running, LIFETIME - DAY)
        vote(getattr(viewer, token))

    later(running, LIFETIME - 1)
    assert [1, 1] == [vote(each, "supper") for each in (viewer.anonymous, viewer.named)]

    later(running, LIFETIME + DAY)
    assert {"next": "0", "results": []} == live.client("backend", exp=FAR).get("user_ids").json()


def test_a_write_right_after_midnight_counts_for_the_new_day(running: tuple[LiveServer, Clock], live: LiveServer):
    viewer, clock = Viewer(live), running[1]
    clock.set(clock.now() // DAY * DAY + DAY)
    for _ in range(2):
        vote(viewer.sharing)
        clock.advance(1)

    later(running, LIFETIME - 2)

    assert [1, 1] == [vote(each, "supper") for each in (viewer.anonymous, viewer.named)]


def test_codes_marked_for_the_shared_id_stay_with_the_person(running: tuple[LiveServer, Clock], live: LiveServer):
    backend, viewer = live.client("backend", channel=CHANNEL, exp=FAR), Viewer(live)
    define(backend, ["A-1"])
    vote(viewer.sharing)
    grant(backend, SHARED, prizes=[0])

    later(running, LIFETIME - 1)

    assert [1] == eligible(viewer.anonymous)


def test_the_expiry_of_the_directory_is_not_reported():
    with live_server() as live:
        vote(Viewer(live).sharing)
        with Client(base_url=live.url) as client:
            upcoming = client.get("/_emulator/clock/next").json()

        assert ["poll"] == [each["kind"] for each in upcoming["next"]]
        assert ["poll"] == [each["kind"] for each in live.advance(LIFETIME + DAY)]
