"""The machine's clock jumps by hours under a production service."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from emulator.core.clock import DAY, HOUR, SECOND, Clock, system_now
from faults.crowd import ACKNOWLEDGED, Crowd
from support.service import CHANNEL, Client, LiveServer, in_production, live_server, real_seconds

ENOUGH = 70
FAR = real_seconds() + 40 * DAY // SECOND
"""An `exp` beyond every jump."""


class Machine:
    """A machine's clock that a test can set wrong."""

    def __init__(self) -> None:
        self.ahead = 0
        """Ms."""

    def now(self) -> int:
        return system_now() + self.ahead


@pytest.fixture
def machine() -> Machine:
    return Machine()


@pytest.fixture
def live(machine: Machine, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    """A production service with this machine's clock."""
    data = f"sqlite://{tmp_path_factory.mktemp('clock')}/data.db"
    settings = in_production(data=data)
    with live_server(settings, clock=Clock(machine.now)) as live:
        yield live


def voter(live: LiveServer, user: str, exp: int = FAR) -> Client:
    return live.client("viewer", user=user, channel=CHANNEL, exp=exp)


def log(live: LiveServer) -> list[dict[str, object]]:
    found = live.client("backend", channel=CHANNEL, exp=FAR).get("vote_logs").json()["result"]
    return [{"identifier": entry["identifier"], "value": entry["value"]} for entry in found]


def test_clock_jumps_lose_no_acknowledged_write(live: LiveServer, machine: Machine):
    crowd, steps = Crowd(exp=FAR), (-5, 5, 0)
    crowd.prepare(live)
    with crowd.writing(live):
        crowd.wait_for(ACKNOWLEDGED, ENOUGH)
        for hours in steps:
            machine.ahead = hours * HOUR
            crowd.wait_for(ACKNOWLEDGED, ENOUGH)
    account = crowd.account(live).show(f"clock set by {steps} hours")

    assert account.faultless, account
    assert 0 == account.refused == account.unknown


def test_the_later_vote_counts_and_the_log_is_ordered_by_time(live: LiveServer, machine: Machine):
    voter(live, "early").post("vote", json={"value": 1}).raise_for_status()
    voter(live, "twice").post("vote", json={"value": 1}).raise_for_status()
    machine.ahead = -5 * HOUR
    voter(live, "twice").post("vote", json={"value": 2}).raise_for_status()

    assert [{"identifier": "twice", "value": 2}, {"identifier": "early", "value": 1}] == log(live)
    assert 2 == voter(live, "twice").get("vote").json()["vote"]


def test_data_swept_while_the_clock_is_ahead_stays_expired(live: LiveServer, machine: Machine):
    crowd = live.client("broadcaster", user=CHANNEL, channel=CHANNEL, exp=FAR)
    for name in ("swept", "unswept"):
        machine.ahead = 0
        crowd.post(f"json_store?id={name}", json={"n": 1}).raise_for_status()
        machine.ahead = 20 * DAY
        assert 404 == crowd.get(f"json_store?id={name}").status_code
        if name == "swept":
            live.run(live.service.control.sweep())
    machine.ahead = 0

    assert [404, 200] == [crowd.get(f"json_store?id={name}").status_code for name in ("swept", "unswept")]
