"""A feature declared in one file appears wherever features do, and no other file changes."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from emulator.feature_list import FEATURES, Features
from features.toy import NOTE_FEATURE
from support import waits
from support.authentication import authenticated_game
from support.service import CHANNEL, CLIENT_ID, Client, LiveServer, live_server

WITH_NOTES = Features(*FEATURES.declared, NOTE_FEATURE)


@pytest.fixture(scope="module")
def noting() -> Iterator[LiveServer]:
    with live_server(features=WITH_NOTES) as live:
        yield live


@pytest.fixture
def broadcaster(noting: LiveServer) -> Client:
    """A broadcaster who has written a note."""
    noting.empty()
    broadcaster = noting.client("broadcaster", user=CHANNEL, channel=CHANNEL)
    broadcaster.post("note", json={"text": "ready"}).raise_for_status()
    return broadcaster


@pytest.fixture
def control(noting: LiveServer) -> Iterator[Client]:
    with Client(base_url=noting.url) as client:
        yield client


def test_rest_and_its_roles(noting: LiveServer, broadcaster: Client):
    viewer = noting.client("viewer", user="1", channel=CHANNEL)

    assert {"text": "ready"} == broadcaster.get("note").json()
    assert 403 == viewer.get("note").status_code


@pytest.mark.usefixtures("broadcaster")
def test_the_socket(noting: LiveServer):
    with authenticated_game(noting, "broadcaster") as game:
        assert {"text": "ready"} == game.data("get", "note")


@pytest.mark.usefixtures("broadcaster")
def test_waits(noting: LiveServer):
    assert waits.ask(noting, "note", path="/text", equals='"ready"').json()["met"]


@pytest.mark.usefixtures("broadcaster")
def test_contents_and_the_count_of_the_dashboard(control: Client):
    (note,) = control.get("/_emulator/contents/notes").json()["rows"]

    assert (CLIENT_ID, CHANNEL) == (note["client_id"], note["channel_id"])
    assert 1 == control.get("/_emulator/contents").json()["notes"]
    assert "Stores</a><small>1</small>" in control.get("/_emulator/").text


def test_snapshots(noting: LiveServer, broadcaster: Client, control: Client):
    snapshot = control.get("/_emulator/snapshot").raise_for_status().content
    noting.empty()
    control.put("/_emulator/snapshot", content=snapshot).raise_for_status()

    assert {"text": "ready"} == broadcaster.get("note").json()


@pytest.mark.usefixtures("broadcaster")
def test_a_snapshot_with_an_invalid_record_is_refused(control: Client):
    snapshot = control.get("/_emulator/snapshot").raise_for_status().text
    refused = control.put("/_emulator/snapshot", content=snapshot.replace('{"text"', '{"words"'))

    assert (400, True) == (refused.status_code, "note default in channel" in refused.json()["info"])
