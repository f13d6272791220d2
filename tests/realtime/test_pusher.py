"""The Pusher protocol, by which pages receive broadcasts as with the published SDK (ruling B4).

`test_pusher_fuzz.py` sends malformed messages at random.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

import pytest

from emulator.core.settings import Limits, Settings
from support.pusher_client import KEY, QUERY, PusherClient, decode_frame, pusher_channel
from support.service import CHANNEL, LiveServer, RunningService, live_server

KIB = 1024
HERE, EVERYWHERE = pusher_channel(), pusher_channel("all")
MAX_CHANNELS = 3


@pytest.fixture
def page(live: LiveServer) -> Iterator[PusherClient]:
    """A connected page."""
    with PusherClient(live) as page:
        yield page


@pytest.fixture
def narrow() -> Iterator[LiveServer]:
    """A service with small limits."""
    with live_server(Settings(limits=Limits(outbox=16 * KIB, topics=MAX_CHANNELS, frame=KIB))) as live:
        yield live


def broadcast(live: RunningService, data: object = 1, call: str = "broadcast") -> None:
    """Broadcast to channel 777."""
    live.client("admin", user="9001", channel=CHANNEL).post(call, json={"data": data}).raise_for_status()


def received(page: PusherClient) -> list[object]:
    """The data of all broadcasts so far."""
    return [each.data for each in page.broadcasts()]


# Connecting


def test_the_greeting_carries_a_socket_id_and_an_activity_timeout(page):
    assert {"event", "data"} == page.greeting.keys()
    assert "pusher:connection_established" == page.greeting["event"]
    data = json.loads(page.greeting["data"])  # JSON in a string, as Pusher sends it
    assert {"socket_id", "activity_timeout"} == data.keys()
    assert re.fullmatch(r"\d+\.\d+", data["socket_id"])
    assert 120 == data["activity_timeout"]


@pytest.mark.parametrize(
    "query", [QUERY, "?protocol=7", "?protocol=6", "?protocol=5", "?client=x&protocol=7", "?protocol=7&protocol=1"]
)
def test_the_protocol_versions_5_to_7_are_supported(live, query):
    with PusherClient(live, query) as page:
        assert "pusher:connection_established" == page.greeting["event"]


@pytest.mark.parametrize(
    "query", ["", "?", "?protocol", "?protocol=", "?protocol=4", "?protocol=8", "?protocol=x", "?protocol=-7"]
)
def test_any_other_protocol_version_closes_with_4007(live, query):
    with PusherClient(live, query) as page:
        assert ("pusher:error", 4007) == (page.greeting["event"], decode_frame(page.greeting)["data"]["code"])
        assert 4007 == page.close_code()


# Subscribing


@pytest.mark.parametrize(
    "data",
    [
        {"auth": "", "channel": HERE},
        {"channel": HERE},
        json.dumps({"auth": "", "channel": HERE}),
        {"channel": HERE, "channel_data": None, "more": 1},
    ],
    ids=["as the SDK", "without auth", "JSON in a string", "with extra members"],
)
def test_a_subscription_is_confirmed_and_receives_broadcasts(live, page, data):
    page.send("pusher:subscribe", data)

    assert {"event": "pusher_internal:subscription_succeeded", "channel": HERE, "data": "{}"} == page.frame()
    broadcast(live)
    assert [1] == received(page)


def test_a_page_receives_only_the_channels_it_subscribes_to(live, page):
    page.subscribe(HERE, EVERYWHERE, pusher_channel("888"))

    broadcast(live, 1)
    broadcast(live, 2, "extension_broadcast")
    live.client("admin", channel="888").post("broadcast", json={"data": 3})
    live.client("admin", channel="999").post("broadcast", json={"data": 4})

    assert [(HERE, 1), (EVERYWHERE, 2), (pusher_channel("888"), 3)] == [
        (each.channel, each.data) for each in page.broadcasts()
    ]


def test_unsubscribing_ends_the_broadcasts_of_that_channel(live, page):
    page.subscribe(HERE, HERE, EVERYWHERE)
    page.send("pusher:unsubscribe", {"channel": HERE})

    broadcast(live, 1)
    broadcast(live, 2, "extension_broadcast")

    assert [2] == received(page)
    page.subscribe(HERE)
    broadcast(live, 3)
    assert [3] == received(page)


def test_the_number_of_channels_is_limited(narrow):
    with PusherClient(narrow) as page:
        page.subscribe(*(f"channel-{number}" for number in range(MAX_CHANNELS)))

        page.send("pusher:subscribe", {"channel": HERE})

        assert 4300 <= page.error() < 4400
        page.subscribe("channel-0")  # subscribed already
        page.send("pusher:unsubscribe", {"channel": "channel-1"})
        page.subscribe(HERE)
        broadcast(narrow)
        assert [1] == received(page)


# Pings


@pytest.mark.parametrize("data", [None, {}, "", "{}", [], 7])
def test_a_ping_gets_a_pong(page, data):
    page.send("pusher:ping", data)

    assert {"event": "pusher:pong", "data": "{}"} == page.frame()


# Invalid messages


@pytest.mark.parametrize(
    "frame",
    [
        "{",
        b'{"event":"pusher:ping","data":{}}',
        "null",
        '{"event":7}',
        '{"event":"client-message","channel":"news","data":{}}',
        '{"event":"pusher:subscribe","data":"[]"}',
        '{"event":"pusher:subscribe","data":{"channel":["news"]}}',
        '{"event":"pusher:unsubscribe"}',
        '{"event":"\\ud800"}',
    ],
)
def test_a_malformed_message_is_an_error_43xx_and_the_connection_stays_open(page, frame):
    page.socket.send(frame)

    assert 4300 <= page.error() < 4400
    assert [] == page.subscribe(HERE).broadcasts()


# Closing


@pytest.mark.parametrize("path", [f"/app/{KEY}", "/app/any", "/app/x/", "//app//x", "/app/%20"])
def test_any_key_is_accepted(live, path):
    with PusherClient(live, path=path) as page:
        assert "pusher:pong" == page.pong()["event"]
