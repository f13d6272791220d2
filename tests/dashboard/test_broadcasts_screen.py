"""The screen of broadcasts: deliveries and sending."""

from __future__ import annotations

import re

import pytest

from dashboard.html_pages import forms_of
from support.pages import main_of
from support.pusher_client import subscribed_page
from support.service import CHANNEL, Client, LiveServer
from support.socket_client import SocketClient


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


def test_the_screen_shows_who_received_a_broadcast(
    live: LiveServer, screen: str, broadcaster: Client, listener: SocketClient
):
    with subscribed_page(live):
        send(broadcaster, "round", {"number": 2})
        listener.update()
        main = main_of(screen)
        (link,) = re.findall('href="([^"]*entry=[0-9]+)"', main)
        delivery = main_of(live.url + link)

    assert '<td data-head="Delivered" class="number">2</td>' in main
    assert "{&#34;number&#34;:2}" in main
    assert "(game, broadcaster 777)" in delivery
    assert "(page)" in delivery


def test_a_form_sends_a_broadcast_and_a_whisper_is_for_one_user(
    screen: str, listener: SocketClient, broadcaster: Client
):
    # A form sends a broadcast
    answer = forms_of(screen)["send"].send(channel_id=CHANNEL, body__event="goal", body__data='{"a": [1]}')

    assert 200 == answer.json()["status"]
    assert {"a": [1]} == listener.update()["data"]["data"]

    # A whisper is for one user
    send(broadcaster, "secret", 1, target="whisper-U5")

    assert ">to one user: <bdi>1<" in main_of(screen)


def test_broadcasts_are_filtered_by_event_and_bounded(screen: str, broadcaster: Client):
    for number in range(60):
        send(broadcaster, f"event-{number}", number)

    assert 50 == main_of(screen).count('<th scope="row" data-head="Event">')
    assert 1 == main_of(f"{screen}?event=event-59").count('<th scope="row" data-head="Event">')
