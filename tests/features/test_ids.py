"""How many polls, rankings, buffers and JSON stores an extension may have in one channel."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from emulator.clock import DAY, HOUR
from emulator.config.settings import Limits, Settings
from support.service import Client, LiveServer, live_server
from support.socket_client import linked_game

KINDS = {
    "vote": {"value": 1},
    "vote_config": {"id": "", "config": {"prompt": "?", "options": ["a"]}},
    "rank": {"key": "a"},
    "accumulate": {"a": 1},
    "json_store": {"a": 1},
}


@pytest.fixture
def three() -> Iterator[LiveServer]:
    with live_server(Settings(limits=Limits(ids=3))) as live:
        yield live


@pytest.fixture
def admin(three: LiveServer) -> Client:
    return three.client("admin", user="1", channel="777")


def begun(client: Client, kind: str, name: str) -> int:
    body = KINDS[kind] | ({"id": name} if kind == "vote_config" else {})
    return client.post(kind, params={"id": name}, json=body).status_code


@pytest.mark.parametrize("kind", KINDS)
def test_there_is_room_for_so_many_ids_and_those_in_use_stay_in_use(admin: Client, kind: str):
    assert [200, 200, 200, 400] == [begun(admin, kind, name) for name in "abcd"]
    assert [200, 200, 200, 400] == [begun(admin, kind, name) for name in "abcd"]


def test_the_refusal_says_how_many_there_are_and_where(admin: Client):
    for name in "abc":
        begun(admin, "vote", name)

    refused = admin.post("vote", params={"id": "d"}, json={"value": 1}).json()

    assert ("Too many ids", "id: 3 of this kind are in use in channel 777, limit 3") == (
        refused["reason"],
        refused["info"],
    )


def test_votes_and_definitions_share_the_ids_of_polls(admin: Client):
    assert [200, 200, 200, 400] == [
        begun(admin, kind, name) for kind, name in zip(["vote", "vote_config"] * 2, "abcd", strict=True)
    ]


def test_channels_kinds_and_extensions_do_not_share_their_room(three: LiveServer, admin: Client):
    for name in "abc":
        begun(admin, "vote", name)

    others = [
        begun(three.client("admin", user="1", channel="778"), "vote", "d"),
        begun(three.client("admin", user="1", channel="777", client_id="another"), "vote", "d"),
        begun(admin, "vote", "global-d"),
        begun(admin, "rank", "d"),
    ]

    assert [200] * 4 == others


@pytest.mark.parametrize("kind", ["vote", "rank"])
def test_what_is_deleted_makes_room(admin: Client, kind: str):
    for name in "abc":
        begun(admin, kind, name)

    admin.delete(kind, params={"id": "b"}).raise_for_status()

    assert [200, 400] == [begun(admin, kind, name) for name in "de"]


def test_what_has_ended_makes_room(three: LiveServer, admin: Client):
    three.freeze()
    for name in "abc":
        begun(admin, "rank", name)
    three.advance(20 * HOUR)
    begun(admin, "rank", "a")

    three.advance(6 * HOUR)

    assert [200, 200, 400] == [begun(admin, "rank", name) for name in "def"]


def test_an_id_that_is_used_on_and_on_stays_counted(three: LiveServer, admin: Client):
    three.freeze()
    for _ in range(3):
        for name in "abc":
            begun(admin, "rank", name)
        three.advance(DAY // 2)

    assert 400 == begun(admin, "rank", "d")


def test_a_reset_makes_room(three: LiveServer, admin: Client):
    for name in "abc":
        begun(admin, "vote", name)

    three.reset()

    assert [200, 200, 200, 400] == [begun(admin, "vote", name) for name in "defg"]


def test_a_poll_over_the_socket_counts_and_one_too_many_is_announced_nowhere(three: LiveServer):
    with linked_game(three) as game:
        config = {"prompt": "?", "options": ["a", "b"]}
        for name in "abc":
            game.data("create", "poll", {"poll_id": name, **config})
        error = game.error("create", "poll", {"poll_id": "d", **config})
        state = game.data("get", "state", {"state_id": "channel"})

    assert (400, "Bad Request") == (error["status"], error["title"])
    assert {"a", "b", "c"} == set(state["state"])


def test_the_notes_of_ids_are_not_among_what_expires(three: LiveServer, admin: Client):
    begun(admin, "rank", "a")

    expired = three.advance(3 * DAY)

    assert ["rank"] == [each["kind"] for each in expired]


def test_two_nodes_share_the_room(tmp_path):
    settings = Settings(data=f"sqlite:///{tmp_path}/shared.db", limits=Limits(ids=3))
    with live_server(settings) as one, live_server(settings) as other:
        clients = [live.client("admin", user="1", channel="777") for live in (one, other)]

        assert [200, 200, 200, 400] == [begun(clients[number % 2], "vote", name) for number, name in enumerate("abcd")]
