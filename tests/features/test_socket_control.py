"""The list of open sockets, and how a test closes and stalls them (operations, Controlling)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from emulator.core.settings import Limits, Settings
from support.journal import entries_of
from support.pusher_client import PusherClient
from support.service import CHANNEL, CLIENT_ID, Client, LiveServer, live_server
from support.socket_client import SocketClient, linked_game

CHANNEL_STATE = {"topic_id": "channel"}
SILENCE = 0.2
"""Seconds in which a message of a live connection would arrive."""

Socket = dict[str, Any]


@pytest.fixture
def sockets(stranger: Client) -> Callable[..., list[Socket]]:
    """List the open sockets, oldest first."""
    return lambda **filters: list(
        stranger.get("/_emulator/sockets", params=filters).raise_for_status().json()["sockets"]
    )


@pytest.fixture
def number(sockets, game: SocketClient) -> int:
    """The number of the game's socket, which follows the state of its channel."""
    game.data("subscribe", "state", CHANNEL_STATE)
    return int(sockets()[-1]["number"])


@pytest.fixture
def act(stranger: Client) -> Callable[..., list[int]]:
    """Close or stall sockets, and return their numbers."""

    def act(verb: str, **body: object) -> list[int]:
        answer = stranger.post(f"/_emulator/sockets/{verb}", json=body).raise_for_status()
        return list(answer.json()["sockets"])

    return act


def is_silent(game: SocketClient) -> bool:
    """Return whether nothing arrives."""
    try:
        game.socket.recv(timeout=SILENCE)
    except TimeoutError:
        return True
    return False


# The list


def test_a_game_is_listed_with_its_caller_and_what_it_follows(live: LiveServer, sockets, game: SocketClient):
    game.data("subscribe", "poll", {"topic_id": "lunch"})
    game.data("subscribe", "state", CHANNEL_STATE)
    game.data("subscribe", "broadcast", {"topic_id": "*"})

    listed = sockets()[-1]

    assert ("game", CLIENT_ID, "broadcaster", CHANNEL, CHANNEL) == tuple(
        listed[name] for name in ("kind", "client_id", "role", "channel_id", "user_id")
    )
    assert ["event:*", "poll:lunch", "state:channel"] == listed["subscriptions"]
    assert (4, 4, 0, False) == tuple(listed[name] for name in ("requests", "frames", "unread", "stalled"))
    assert "127.0.0.1" == listed["address"]
    assert 0 <= live.now() - listed["opened_at"] < 60_000


def test_a_page_is_listed_with_its_pusher_channels(live: LiveServer, sockets):
    channels = [f"twitch.pubsub.{CLIENT_ID}.777", f"twitch.pubsub.{CLIENT_ID}.all", "elsewhere"]
    with PusherClient(live) as page:
        page.subscribe(*channels)
        listed = sockets()[-1]

    assert ("page", CLIENT_ID, "777", channels) == tuple(
        listed[name] for name in ("kind", "client_id", "channel_id", "subscriptions")
    )
    assert page.greeting["data"].startswith(f'{{"socket_id":"{listed["number"]}.')
    assert (3, 4) == (listed["requests"], listed["frames"])


def test_the_list_is_read_in_pages_and_by_client_id_and_channel(live: LiveServer, stranger: Client, sockets, number):
    with linked_game(live, "778"), linked_game(live, "778"):
        assert {"778"} == {each["channel_id"] for each in sockets(client_id=CLIENT_ID, channel_id="778")}
        assert [] == sockets(client_id="another")
        first = stranger.get("/_emulator/sockets", params={"channel_id": "778", "limit": 1}).json()
        second = sockets(channel_id="778", limit=1, cursor=first["next"])
        both = stranger.get("/_emulator/sockets", params={"channel_id": "778", "limit": 2}).json()

        assert (2, str(first["sockets"][0]["number"])) == (first["total"], first["next"])
        assert [first["sockets"][0]["number"] + 1] == [each["number"] for each in second]
        assert (2, "0") == (len(both["sockets"]), both["next"])


# Closing


@pytest.mark.parametrize("code", [1000, 1014, 4999])
def test_a_socket_is_closed_with_the_given_code_and_reason(act, sockets, number: int, game: SocketClient, code: int):
    assert [number] == act("close", socket=number, code=code, reason="häßlich")

    assert code == game.close_code()
    assert "häßlich" == game.socket.close_reason
    assert number not in [each["number"] for each in sockets()]


def test_all_sockets_are_closed_with_1012_by_default(live: LiveServer, act, number: int, game: SocketClient):
    with PusherClient(live) as page:
        assert [number, number + 1] == act("close", all=True)[-2:]

        assert [1012, 1012] == [game.close_code(), page.close_code()]

    assert {"closes.closed_by_call"} == {each["code"] for each in entries_of(live, kind="frame", path="close")}


@pytest.mark.parametrize(
    ("body", "detail"),
    [
        *(({"code": code}, f"code: {code}") for code in (1005, 1006, 1015, 2999)),
        ({"all": True}, "socket, all: "),
        ({"socket": None}, "socket, all: "),
    ],
)
def test_a_malformed_close_closes_nothing(stranger: Client, number: int, game: SocketClient, body, detail: str):
    refused = stranger.post("/_emulator/sockets/close", json={"socket": number, **body})

    assert 400 == refused.status_code
    assert detail in refused.text
    assert game.no_update()


@pytest.mark.parametrize("verb", ["close", "stall"])
def test_a_socket_that_is_not_open_is_refused(stranger: Client, verb: str):
    refused = stranger.post(f"/_emulator/sockets/{verb}", json={"socket": 999_999})

    assert 404 == refused.status_code
    assert "there is no open socket 999999" in refused.text


# Stalling


@pytest.mark.parametrize("times", [1, 2])
def test_a_stalled_socket_gets_and_does_nothing_until_it_is_released(
    act, sockets, number: int, broadcaster: Client, game: SocketClient, times: int
):
    requests = sockets()[-1]["requests"]
    assert [[number]] * times == [act("stall", socket=number) for _ in range(times)]
    for round_number in (1, 2):
        broadcaster.post("channel_state", json={"round": round_number}).raise_for_status()
    game.send("get", "state", {"state_id": "channel"})

    assert is_silent(game)
    listed = sockets()[-1]
    assert (True, requests) == (listed["stalled"], listed["requests"])
    assert listed["unread"] > 100

    assert [[number]] * times == [act("stall", socket=number, stalled=False) for _ in range(times)]
    assert [{"round": 1}, {"round": 2}] == [game.update()["data"]["state"] for _ in range(2)]
    assert {"round": 2} == game.reply()["data"]["state"]
    assert (False, 0) == (sockets()[-1]["stalled"], sockets()[-1]["unread"])


def test_a_stalled_socket_can_be_closed_and_gets_what_was_held_back(
    act, number: int, broadcaster: Client, game: SocketClient
):
    act("stall", socket=number)
    broadcaster.post("channel_state", json={"round": 1}).raise_for_status()
    act("close", socket=number, code=4001)

    assert {"round": 1} == game.update()["data"]["state"]
    assert 4001 == game.close_code()


def test_a_stalled_socket_is_closed_with_1013_when_too_much_is_unread():
    with live_server(Settings(limits=Limits(outbox=16 * 1024))) as live, linked_game(live) as game:
        game.data("subscribe", "state", CHANNEL_STATE)
        with Client(base_url=live.url) as control:
            control.post("/_emulator/sockets/stall", json={"all": True}).raise_for_status()
        live.client("broadcaster", user=CHANNEL, channel=CHANNEL).post("channel_state", json={"text": "x" * 20_000})

        assert "x" * 20_000 == game.update()["data"]["state"]["text"]
        assert 1013 == game.close_code()


def test_a_service_stops_although_a_socket_is_stalled():
    with live_server() as live:
        game = linked_game(live)
        with Client(base_url=live.url) as control:
            control.post("/_emulator/sockets/stall", json={"all": True}).raise_for_status()

    with game:
        assert 1001 == game.close_code()
