"""`user_info`, and the directory of shared user ids (ruling A6)."""

from __future__ import annotations

import pytest

from support.authentication import authenticated_game
from support.seeds import apply
from support.service import CHANNEL, Client, LiveServer


def list_ids(client: Client, cursor: str = "0") -> tuple[str, list[str]]:
    """Return the next cursor and the ids of one page."""
    page = client.get("user_ids", params={"cursor": cursor}).json()
    return page["next"], [each["twitch_id"] for each in page["results"]]


def test_user_info_returns_the_caller_and_the_time(live: LiveServer, viewer):
    now = live.freeze()

    record = viewer("5551").get("user_info").json()

    assert {
        "server_time": now,
        "ip_address": "127.0.0.0",
        "registered": False,
        "visualization_id": "",
        "role": "viewer",
        "channel_id": CHANNEL,
        "user_id": "5551",
        "opaque_user_id": "U5551",
        "extension_id": "my-extension",
    } == record


@pytest.mark.parametrize(("action", "ids"), [("get", []), ("set", [CHANNEL])])
def test_a_write_over_the_socket_adds_the_id(live: LiveServer, backend: Client, action: str, ids: list[str]):
    with authenticated_game(live, "broadcaster", user=CHANNEL) as game:
        game.data("subscribe", "state", {"topic_id": "channel"})
        game.data(action, "state", {"state_id": "channel", "state": {}})

    assert ("0", ids) == list_ids(backend)


@pytest.mark.slow
def test_a_page_has_1000_ids(live: LiveServer, backend: Client):
    users = [f"{user:05}" for user in range(1, 1_201)]
    for start in range(0, 1_200, 300):
        apply(live, rankings=[{"id": "a", "answers": dict.fromkeys(users[start : start + 300], "blue")}])

    cursor, first = list_ids(backend)

    assert users[:1_000] == first
    assert ("0", users[1_000:]) == list_ids(backend, cursor)
