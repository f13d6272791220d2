"""`extcli datastream`."""

from __future__ import annotations

import json

from support.socket_client import linked_game


def test_games_of_the_channel_receive_the_event(extcli, live):
    with linked_game(live, "1001") as game:
        game.data("subscribe", "datastream", {})

        assert 0 == extcli("datastream", "send", '{"click": [10, 20]}').exit_code

        [entry] = game.update()["data"]["events"]
    assert {"click": [10, 20]} == entry["event"]


def test_an_event_can_come_from_standard_input(extcli, live):
    with linked_game(live, "1001") as game:
        game.data("subscribe", "datastream", {})
        extcli("datastream", "send", "-", input=json.dumps("hello"))

        assert "hello" == game.update()["data"]["events"][0]["event"]


def test_an_event_that_is_not_json_is_a_usage_error(extcli):
    result = extcli("datastream", "send", "click", exits=2)

    assert "the event is not JSON" in result.stderr
