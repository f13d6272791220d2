"""The Pusher protocol, by which pages receive broadcasts as with the published SDK (ruling B4).

`test_pusher_fuzz.py` sends malformed messages at random.
"""

from __future__ import annotations

import gc
import json
import random
import re
import signal
import socket
import string
from collections.abc import Iterator
from itertools import count
from urllib.parse import urlsplit

import pytest
from websockets.exceptions import InvalidStatus

from emulator.core.config.settings import Limits, Settings
from emulator.realtime.web_page_connection import PusherConnection
from support.process import server_process, wait_until
from support.pusher_client import KEY, QUERY, PusherClient, decode_frame, pusher_channel, subscribed_page
from support.resources import assert_released, resources
from support.service import CHANNEL, Client, LiveServer, RunningService, live_server
from support.socket_client import TIMEOUT

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


def test_every_page_has_its_own_socket_id(live):
    ids = set()
    for _ in range(5):
        with PusherClient(live) as page:
            ids.add(json.loads(page.greeting["data"])["socket_id"])

    assert 5 == len(ids)


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


@pytest.mark.parametrize("path", [f"/app/{KEY}", "/app/any", "/app/x/", "//app//x", "/app/%20"])
def test_any_key_is_accepted(live, path):
    with PusherClient(live, path=path) as page:
        assert "pusher:pong" == page.pong()["event"]


@pytest.mark.parametrize("path", ["/app", "/app/", "/app/a/b", "/v1/app/a"])
def test_pages_connect_at_no_other_path(live, path):
    with pytest.raises(InvalidStatus) as rejected:
        PusherClient(live, path=path)

    assert 404 == rejected.value.response.status_code


def test_a_namespace_has_its_own_pages(live):
    blue = RunningService(f"{live.url}/_ns/blue")
    try:
        with subscribed_page(blue) as page, subscribed_page(live) as outside:
            broadcast(blue)

            assert ([1], []) == (received(page), received(outside))
    finally:
        Client().delete(blue.url)


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


def test_a_broadcast_has_the_format_that_the_sdk_decodes(live, page):
    page.subscribe(HERE)

    broadcast(live, {"n": 1})

    envelope = '{"event":"sandbox:my-extension:default","data":{"n":1}}'
    assert {
        "event": "broadcast",
        "channel": "twitch.pubsub.my-extension.777",
        "data": json.dumps({"message": envelope}, separators=(",", ":")),
    } == page.frame()


def test_a_page_receives_only_the_channels_it_subscribes_to(live, page):
    page.subscribe(HERE, EVERYWHERE, pusher_channel("888"))

    broadcast(live, 1)
    broadcast(live, 2, "extension_broadcast")
    live.client("admin", channel="888").post("broadcast", json={"data": 3})
    live.client("admin", channel="999").post("broadcast", json={"data": 4})

    assert [(HERE, 1), (EVERYWHERE, 2), (pusher_channel("888"), 3)] == [
        (each.channel, each.data) for each in page.broadcasts()
    ]


def test_a_second_subscription_is_confirmed_but_not_delivered_twice(live, page):
    page.subscribe(HERE, HERE)

    broadcast(live)

    assert [1] == received(page)


def test_unsubscribing_ends_the_broadcasts_of_that_channel(live, page):
    page.subscribe(HERE, HERE, EVERYWHERE)
    page.send("pusher:unsubscribe", {"channel": HERE})

    broadcast(live, 1)
    broadcast(live, 2, "extension_broadcast")

    assert [2] == received(page)
    page.subscribe(HERE)
    broadcast(live, 3)
    assert [3] == received(page)


@pytest.mark.parametrize("channel", [HERE, "unknown", "private-x"])
def test_unsubscribing_without_a_subscription_gets_no_reply(page, channel):
    page.send("pusher:unsubscribe", {"channel": channel})

    assert [] == page.broadcasts()


@pytest.mark.parametrize(
    "channel",
    ["news", "twitch.pubsub", "twitch.pubsub.", "twitch.pubsub.x", "twitch.pubsub..", "cache-x", "x" * 200, "é\0", " "],
)
def test_a_channel_without_broadcasts_is_silent(live, page, channel):
    page.subscribe(channel)

    broadcast(live)
    broadcast(live, 2, "extension_broadcast")

    assert [] == page.broadcasts()


@pytest.mark.parametrize("channel", [f"private-{HERE}", "presence-x", "private-encrypted-x", "private-", "presence-"])
def test_a_private_channel_is_refused_and_the_connection_stays_open(page, channel):
    page.send("pusher:subscribe", {"auth": "key:signature", "channel": channel})

    answer = page.reply()
    assert ("pusher:subscription_error", channel) == (answer["event"], answer["channel"])
    assert ("AuthError", 403) == (answer["data"]["type"], answer["data"]["status"])
    page.subscribe(HERE)


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


def test_a_pong_gets_no_reply(page):
    page.send("pusher:pong", {})

    assert [] == page.broadcasts()


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


def test_a_message_over_the_limit_closes_with_1009(narrow):
    with PusherClient(narrow) as page:
        page.send("pusher:ping", {"x": "x" * KIB})

        assert 1009 == page.close_code()


# Closing


def test_a_closed_page_leaves_nothing_behind(live):
    before = resources(live)
    pages = [subscribed_page(live).subscribe("news") for _ in range(5)]
    assert before[:2] != resources(live)[:2]

    for number, page in enumerate(pages):
        if number % 2:
            page.socket.close()
        else:
            page.socket.socket.shutdown(socket.SHUT_RDWR)

    assert_released(live, before)


def incompressible(number: int) -> str:
    """4,006 characters that are sent uncompressed, different for each number."""
    return f"{number:06}" + "".join(random.Random(number).choices(string.ascii_letters, k=4_000))


def never_reads(live: LiveServer) -> PusherClient:
    """A page with small buffers that reads nothing until its close code is read."""
    small = socket.socket()
    small.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 * KIB)
    small.settimeout(TIMEOUT)
    small.connect(("127.0.0.1", urlsplit(live.url).port or 0))
    return PusherClient(live, sock=small, max_queue=1).subscribe(HERE)


def is_closing(live: LiveServer) -> bool:
    """Whether the service has sent a close that the client has not answered."""
    return any(each.connection._protocol.state.name == "CLOSING" for each in list(live.service.gateway.admission.peers))


def test_a_slow_page_is_closed_with_1013_and_does_not_delay_others(narrow):
    with never_reads(narrow) as slow, subscribed_page(narrow) as page:
        admin = narrow.client("admin", channel=CHANNEL)
        numbers = count()
        while not is_closing(narrow):
            admin.post("broadcast", json={"data": incompressible(number := next(numbers))}).raise_for_status()
            assert [incompressible(number)] == received(page)

        assert 1013 == slow.close_code()
        broadcast(narrow, "after")
        assert ["after"] == received(page)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_stopping_service_closes_its_pages_with_1001(number):
    with server_process() as served:
        with subscribed_page(served) as page, PusherClient(served) as idle:
            served.process.send_signal(number)

            assert [1001, 1001] == [page.close_code(), idle.close_code()]
        assert 0 == served.process.wait(TIMEOUT)


def test_a_refused_subscription_keeps_nothing_of_its_connection(live: LiveServer):
    def connections() -> int:
        return sum(type(each) is PusherConnection for each in gc.get_objects())

    before = connections()  # of tests whose failures or servers are still referred to
    for _ in range(3):
        with PusherClient(live) as page:
            page.send("pusher:subscribe", {"channel": "private-x"})
            assert "pusher:subscription_error" == page.reply()["event"]

    wait_until(lambda: connections() <= before)
