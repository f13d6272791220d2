"""The screen of open sockets."""

from __future__ import annotations

import httpx
import pytest

from dashboard.html_pages import forms_of
from support.pages import main_of
from support.pusher_client import subscribed_page
from support.service import LiveServer
from support.socket_client import SocketClient


@pytest.fixture
def screen(live: LiveServer) -> str:
    return f"{live.url}/_emulator/ui/sockets"


@pytest.fixture
def number(live: LiveServer, game: SocketClient) -> int:
    """The number of a game that follows an event with a hostile name."""
    game.data("subscribe", "broadcast", {"topic_id": "<script>x</script>"})
    return int(httpx.get(f"{live.url}/_emulator/sockets").json()["sockets"][-1]["number"])


def test_the_screen_lists_and_finds_games_and_pages_with_what_they_follow(live: LiveServer, screen: str, number: int):
    # The screen lists games and pages with what they follow
    with subscribed_page(live):
        main = main_of(screen)

    assert f"socket={number}" in main
    assert "event:&lt;script&gt;x&lt;/script&gt;" in main
    assert "twitch.pubsub.my-extension.777" in main
    assert "extcli socket list" in main

    # A search finds a part of a channel
    channel = httpx.get(f"{live.url}/_emulator/sockets").json()["sockets"][-1]["channel_id"]

    assert f"socket={number}" in main_of(f"{screen}?search={channel[1:]}")
    assert f"socket={number}" not in main_of(f"{screen}?search={channel}0")


def test_a_socket_is_closed_from_its_page(screen: str, number: int, game: SocketClient):
    forms_of(f"{screen}?socket={number}")["close"].send(code="4321", reason="bye").raise_for_status()

    assert (4321, "bye") == (game.close_code(), game.socket.close_reason)
    assert "This socket is no longer open." in main_of(f"{screen}?socket={number}")


def test_one_socket_or_all_are_stalled_released_and_closed(screen: str, number: int, game: SocketClient):
    # A socket is stalled and released from its page
    page = f"{screen}?socket={number}"
    forms_of(page)["stall"].send().raise_for_status()

    assert "stalled" in main_of(page)
    assert "stall" not in forms_of(page)

    forms_of(page)["release"].send().raise_for_status()
    assert game.no_update()

    # All sockets are stalled released and closed
    for name in ("stall-all", "release-all"):
        assert number in forms_of(screen)[name].send().raise_for_status().json()["sockets"]
    assert game.no_update()

    forms_of(screen)["close-all"].send().raise_for_status()
    assert 1012 == game.close_code()
