"""The screen of broadcasts: deliveries, sending and sending again."""

from __future__ import annotations

import re

import pytest

from support.forms import forms_of
from support.pages import main_of
from support.pusher_client import subscribed_page
from support.service import CHANNEL, Client, LiveServer
from support.socket_client import SocketClient

HOSTILE = "</pre><script>alert(1)</script>\u202e'\""


@pytest.fixture
def screen(live: LiveServer) -> str:
    return f"{live.url}/_emulator/ui/broadcasts"


@pytest.fixture
def listener(game: SocketClient) -> SocketClient:
    """A game that follows all events."""
    game.data("subscribe", "broadcast", {"topic_id": "*"})
    return game


def send(client: Client, event: str, data: object, call: str = "broadcast", **more: str) -> None:
    client.post(call, json={"event": event, "data": data, **more}).raise_for_status()


def newest(screen: str) -> str:
    """Return the URL of the newest broadcast."""
    return f"{screen}?entry={re.findall(r'entry=([0-9]+)', main_of(screen))[0]}"


def facts(url: str) -> dict[str, str]:
    pairs = re.findall(r"<dt>(.*?)</dt><dd>(.*?)</dd>", main_of(url))
    return {name: re.sub("<[^>]*>", "", value) for name, value in pairs}


def test_the_screen_shows_who_received_a_broadcast(
    live: LiveServer, screen: str, broadcaster: Client, listener: SocketClient
):
    with subscribed_page(live):
        send(broadcaster, "round", {"number": 2})
        listener.update()
        found, main = facts(newest(screen)), main_of(newest(screen))

    assert ("broadcaster", "channel", CHANNEL, "2", "0") == tuple(
        found[name] for name in ("Role", "To", "Channel", "Delivered", "Dropped")
    )
    assert "(game, broadcaster 777)" in main
    assert "(page)" in main
    assert "{&#34;number&#34;:2}" in main


def test_a_form_sends_a_broadcast(screen: str, listener: SocketClient):
    answer = forms_of(screen)["send"].send(channel_id=CHANNEL, body__event="goal", body__data_as_json='{"a": [1]}')

    assert 200 == answer.json()["status"]
    assert {"a": [1]} == listener.update()["data"]["data"]


@pytest.mark.parametrize(
    ("call", "role", "data"),
    [("broadcast", "broadcaster", {"n": [1, "é"]}), ("extension_broadcast", "admin", HOSTILE)],
)
def test_a_broadcast_is_sent_again(live: LiveServer, screen: str, listener: SocketClient, call: str, role: str, data):
    send(live.client(role, user=CHANNEL, channel=CHANNEL), "round", data, call)
    first = listener.update()["data"]

    assert 200 == forms_of(newest(screen))["resend"].send().json()["status"]

    assert first == listener.update()["data"]


def test_a_whisper_is_not_sent_again_to_everyone(screen: str, broadcaster: Client):
    send(broadcaster, "secret", 1, target="whisper-U5")

    assert "one user" == facts(newest(screen))["To"]
    assert "resend" not in forms_of(newest(screen))


def test_broadcasts_are_filtered_by_event_and_bounded(screen: str, broadcaster: Client):
    for number in range(60):
        send(broadcaster, f"event-{number}", number)

    assert 50 == main_of(screen).count('<th scope="row" data-head="When">')
    assert 1 == main_of(f"{screen}?event=event-59").count('<th scope="row" data-head="When">')
