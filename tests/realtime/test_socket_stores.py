"""State and config over the socket: reads, writes, patches, roles and updates.

Rulings A4, S1, S2, S4, S6, W1, X2, X4, X5. The rules of `extcli conform` for games hold the rest.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from support.authentication import authenticated_game
from support.service import CHANNEL, OTHER_ID
from support.socket_client import SocketClient, linked_game

CHANNEL_STATE = {"state_id": "channel"}


def state(game: SocketClient, state_id: str = "channel") -> dict[str, Any]:
    """Read a state."""
    return dict(game.data("get", "state", {"state_id": state_id})["state"])


def set_state(game: SocketClient, document: object, state_id: str = "channel") -> dict[str, Any]:
    """Replace a state; returns the response."""
    return game.data("set", "state", {"state_id": state_id, "state": document})


def updates(game: SocketClient, number: int) -> list[Any]:
    """The next updates, after checking that there are no more."""
    seen = [game.update()["data"] for _ in range(number)]
    assert game.no_update()
    return seen


@pytest.mark.parametrize("name", ["", "viewer", "extension_viewer", "Channel", "combined", "x" * 1_000])
def test_only_channel_and_extension_have_a_state(game, name):
    assert 400 == game.error("get", "state", {"state_id": name})["status"]
    assert 400 == game.error("subscribe", "state", {"topic_id": name})["status"]


def test_older_requests_use_the_target_as_store_and_update_as_patch(live, game):
    game.data("set", "channel", {"state": {"a": 1}})
    game.socket.send(
        json.dumps(
            {
                "action": "update",
                "params": {"request_id": 99, "target": "channel"},
                "data": {"state": [{"op": "add", "path": "/b", "value": 2}]},
            }
        )
    )
    reply = game.message()

    assert (99, "update", "channel") == tuple(reply["meta"][name] for name in ("request_id", "action", "target"))
    assert {"a": 1, "b": 2} == reply["data"]["state"] == game.data("get", "channel")["state"] == state(game)
    assert {} == game.data("get", "extension")["state"]


def test_a_token_without_a_channel_has_only_the_extension_state(live):
    with authenticated_game(live, "backend", channel=None) as game:
        set_state(game, {"a": 1}, "extension")

        refusals = [
            game.error("get", "state", CHANNEL_STATE),
            game.error("set", "config", {"config": {}}),
            game.error("subscribe", "state", {"topic_id": "channel"}),
        ]

        assert [400] * 3 == [error["status"] for error in refusals]
        assert {"a": 1} == state(game, "extension")


def test_a_subscription_may_name_its_target_in_its_data(game):
    game.data("subscribe", "", {"target": "channel"})

    set_state(game, {"a": 1})

    assert [{"topic_id": "channel", "state": {"a": 1}}] == updates(game, 1)
    game.data("unsubscribe", "", {"target": "channel"})
    set_state(game, {"a": 2})
    assert [] == updates(game, 0)


def test_each_extension_has_one_state_for_all_channels(live, admin_game):
    with linked_game(live, "888") as elsewhere, linked_game(live, CHANNEL, OTHER_ID) as of_another:
        for each in (elsewhere, of_another):
            each.data("subscribe", "state", {"topic_id": "extension"})

        set_state(admin_game, {"a": 1}, "extension")

        assert [{"topic_id": "extension", "state": {"a": 1}}] == updates(elsewhere, 1)
        assert [] == updates(of_another, 0)
        assert {} == state(of_another, "extension")


def test_the_combined_config_has_no_updates(game):
    assert 400 == game.error("subscribe", "config", {"config_id": "combined"})["status"]


def test_the_timestamp_is_the_time_of_the_service_in_ms(live, game):
    live.set(2_000_000_000_123)

    assert 2_000_000_000_123 == game.request("get", "state", {"state_id": "channel"})["meta"]["timestamp"]
