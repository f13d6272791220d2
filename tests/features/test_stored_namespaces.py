"""Namespaces that a file holds from an earlier process, before anyone uses them again."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from emulator.core.settings import Limits, Settings
from support.service import CHANNEL, Client, LiveServer, RunningService, live_server


def vote(service: RunningService, user: str = "1") -> None:
    service.client("viewer", user=user, channel=CHANNEL).post("vote", json={"value": 1}).raise_for_status()


def count(service: RunningService) -> int:
    return int(service.client("viewer", user="9", channel=CHANNEL).get("vote").raise_for_status().json()["count"])


def at(live: LiveServer, name: str) -> RunningService:
    return RunningService(f"{live.url}/_ns/{name}")


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """The settings of a service on a file that has the namespaces `blue`, with a vote, and `empty`."""
    settings = Settings(data=f"sqlite://{tmp_path}/data.db", limits=Limits(namespaces=2))
    with live_server(settings) as live:
        vote(at(live, "blue"))
        live._http.post("/_ns/empty").raise_for_status()
        live._http.post("/_emulator/reset?undo=60").raise_for_status()
    return settings


@pytest.fixture
def live(settings: Settings) -> Iterator[LiveServer]:
    with live_server(settings) as live:
        yield live


@pytest.fixture
def client(live: LiveServer) -> Client:
    return live._http


def opened(live: LiveServer) -> int:
    assert live.service.namespaces is not None
    return len(live.service.namespaces.fronts) - 1


def test_they_are_listed_with_their_records_and_none_is_opened(live: LiveServer, client: Client):
    listing = client.get("/_ns").raise_for_status().json()
    before = {each["name"]: each["records"] for each in listing["details"]}

    assert ["blue", "empty"] == listing["namespaces"]
    assert all((0, 0) == (each["sockets"], each["idle"]) for each in listing["details"])
    assert 0 == opened(live)
    assert (1, 0) == (count(at(live, "blue")), count(at(live, "empty")))
    assert before == {each["name"]: each["records"] for each in client.get("/_ns").json()["details"]}


def test_a_stored_namespace_can_be_a_source_but_not_a_target_of_a_fork(live: LiveServer, client: Client):
    assert 409 == client.post("/_ns/blue?from=default").status_code
    assert 200 == client.post("/_ns/copy?from=blue").status_code
    assert (1, 1) == (count(at(live, "blue")), count(at(live, "copy")))


def test_one_can_be_dropped_without_opening_it(settings: Settings):
    with live_server(settings) as live:
        live._http.delete("/_ns/blue").raise_for_status()

        assert ["empty"] == live._http.get("/_ns").json()["namespaces"]
        assert 0 == opened(live)
    with live_server(settings) as live:
        assert ["empty"] == live._http.get("/_ns").json()["namespaces"]
        assert 0 == count(at(live, "blue"))


def test_idle_ones_are_dropped_counting_from_the_start_of_the_process(live: LiveServer, client: Client):
    assert live.service.namespaces is not None
    live.run(live.service.namespaces.drop_idle(3600))
    assert ["blue", "empty"] == client.get("/_ns").json()["namespaces"]

    live.run(live.service.namespaces.drop_idle(0))

    assert [] == client.get("/_ns").json()["namespaces"]
