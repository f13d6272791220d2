"""The socket of pages, which speaks the Pusher protocol 7 as the published SDK does (ruling B4).

A page is told what it did wrong and stays; it is closed for what it reads too slowly, and when the service stops.
"""

from __future__ import annotations

import asyncio
import json
import logging
import random
import re
import signal
import socket
import string
from collections.abc import Iterator
from itertools import count
from logging.handlers import BufferingHandler
from typing import Any
from urllib.parse import urlsplit

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from websockets.exceptions import InvalidStatus

from emulator.config.settings import Limits, Settings
from support.process import server_process
from support.pusher_client import KEY, QUERY, PusherClient, decode_frame, pusher_channel, subscribed_page
from support.service import CHANNEL, Client, LiveServer, RunningService, live_server
from support.socket_client import TIMEOUT

KIB = 1024
HERE, EVERYWHERE = pusher_channel(), pusher_channel("all")
MOST = 3


@pytest.fixture
def page(live: LiveServer) -> Iterator[PusherClient]:
    """A page that has been greeted."""
    with PusherClient(live) as page:
        yield page


@pytest.fixture
def narrow() -> Iterator[LiveServer]:
    """A service with small limits."""
    with live_server(Settings(limits=Limits(outbox=16 * KIB, topics=MOST, frame=KIB))) as live:
        yield live


def say(live: RunningService, data: object = 1, call: str = "broadcast") -> None:
    """Broadcast to channel 777."""
    live.client("admin", user="9001", channel=CHANNEL).post(call, json={"data": data}).raise_for_status()


def heard(page: PusherClient) -> list[object]:
    """The data of all that has come."""
    return [each.data for each in page.broadcasts()]


async def held(live: LiveServer) -> tuple[int, int, int]:
    """Connections, followed topics, and tasks, when what is under way has ended."""
    await live.service.polls.updates.clock_moved()
    await live.service.engine.check()
    return live.service.gateway.size, len(live.service.hub._subscribers), len(asyncio.all_tasks())


def comes_to_hold(live: LiveServer, before: tuple[int, int, int]) -> bool:
    """Whether it holds that again; an end may still have to be seen."""
    return any(live.run(held(live)) == before for _ in range(2_000))


# The greeting


def test_a_page_is_greeted_first_with_its_id_and_when_to_ask_whether_the_connection_stands(page):
    assert {"event", "data"} == page.greeting.keys()
    assert "pusher:connection_established" == page.greeting["event"]
    data = json.loads(page.greeting["data"])  # JSON in a string, as Pusher sends it
    assert {"socket_id", "activity_timeout"} == data.keys()
    assert re.fullmatch(r"\d+\.\d+", data["socket_id"])
    assert 120 == data["activity_timeout"]


def test_every_page_has_an_id_of_its_own(live):
    ids = set()
    for _ in range(5):
        with PusherClient(live) as page:
            ids.add(json.loads(page.greeting["data"])["socket_id"])

    assert 5 == len(ids)


@pytest.mark.parametrize(
    "query", [QUERY, "?protocol=7", "?protocol=6", "?protocol=5", "?client=x&protocol=7", "?protocol=7&protocol=1"]
)
def test_the_protocols_5_to_7_are_spoken_whatever_else_the_query_says(live, query):
    with PusherClient(live, query) as page:
        assert "pusher:connection_established" == page.greeting["event"]


@pytest.mark.parametrize(
    "query", ["", "?", "?protocol", "?protocol=", "?protocol=4", "?protocol=8", "?protocol=x", "?protocol=-7"]
)
def test_another_protocol_or_none_is_an_error_and_a_close_with_4007(live, query):
    with PusherClient(live, query) as page:
        assert ("pusher:error", 4007) == (page.greeting["event"], decode_frame(page.greeting)["data"]["code"])
        assert 4007 == page.close_code()


@pytest.mark.parametrize("path", [f"/app/{KEY}", "/app/any", "/app/x/", "//app//x", "/app/%20"])
def test_any_key_will_do(live, path):
    with PusherClient(live, path=path) as page:
        assert "pusher:pong" == page.pong()["event"]


@pytest.mark.parametrize("path", ["/app", "/app/", "/app/a/b", "/v1/app/a"])
def test_there_are_no_pages_elsewhere(live, path):
    with pytest.raises(InvalidStatus) as refused:
        PusherClient(live, path=path)

    assert 404 == refused.value.response.status_code


def test_a_namespace_serves_pages_too(live):
    blue = RunningService(f"{live.url}/_ns/blue")
    try:
        with subscribed_page(blue) as page, subscribed_page(live) as outside:
            say(blue)

            assert ([1], []) == (heard(page), heard(outside))
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
    ids=["as the SDK", "without auth", "JSON in a string", "with more"],
)
def test_a_page_subscribes_and_is_told_so_and_hears_what_is_sent(live, page, data):
    page.send("pusher:subscribe", data)

    assert {"event": "pusher_internal:subscription_succeeded", "channel": HERE, "data": "{}"} == page.frame()
    say(live)
    assert [1] == heard(page)


def test_a_broadcast_is_json_in_a_string_in_an_object_in_a_string(live, page):
    page.subscribe(HERE)

    say(live, {"n": 1})

    envelope = '{"event":"sandbox:my-extension:default","data":{"n":1}}'
    assert {
        "event": "broadcast",
        "channel": "twitch.pubsub.my-extension.777",
        "data": json.dumps({"message": envelope}, separators=(",", ":")),
    } == page.frame()


def test_a_page_hears_all_channels_that_it_follows_and_no_other(live, page):
    page.subscribe(HERE, EVERYWHERE, pusher_channel("888"))

    say(live, 1)
    say(live, 2, "extension_broadcast")
    live.client("admin", channel="888").post("broadcast", json={"data": 3})
    live.client("admin", channel="999").post("broadcast", json={"data": 4})

    assert [(HERE, 1), (EVERYWHERE, 2), (pusher_channel("888"), 3)] == [
        (each.channel, each.data) for each in page.broadcasts()
    ]


def test_who_subscribes_twice_is_told_so_twice_and_hears_once(live, page):
    page.subscribe(HERE, HERE)

    say(live)

    assert [1] == heard(page)


def test_who_unsubscribes_hears_of_that_channel_no_more(live, page):
    page.subscribe(HERE, HERE, EVERYWHERE)
    page.send("pusher:unsubscribe", {"channel": HERE})

    say(live, 1)
    say(live, 2, "extension_broadcast")

    assert [2] == heard(page)
    page.subscribe(HERE)
    say(live, 3)
    assert [3] == heard(page)


@pytest.mark.parametrize("channel", [HERE, "never-heard-of", "private-x"])
def test_unsubscribing_from_what_one_does_not_follow_says_nothing(page, channel):
    page.send("pusher:unsubscribe", {"channel": channel})

    assert [] == page.broadcasts()


@pytest.mark.parametrize(
    "channel",
    ["news", "twitch.pubsub", "twitch.pubsub.", "twitch.pubsub.x", "twitch.pubsub..", "cache-x", "x" * 200, "é\0", " "],
)
def test_a_public_channel_that_nothing_is_sent_to_is_silent(live, page, channel):
    page.subscribe(channel)

    say(live)
    say(live, 2, "extension_broadcast")

    assert [] == page.broadcasts()


@pytest.mark.parametrize("channel", [f"private-{HERE}", "presence-x", "private-encrypted-x", "private-", "presence-"])
def test_a_channel_that_needs_a_key_is_refused_and_the_connection_stays(page, channel):
    page.send("pusher:subscribe", {"auth": "key:signature", "channel": channel})

    answer = page.answer()
    assert ("pusher:subscription_error", channel) == (answer["event"], answer["channel"])
    assert ("AuthError", 403) == (answer["data"]["type"], answer["data"]["status"])
    page.subscribe(HERE)


def test_a_page_follows_as_many_channels_as_the_limit_says(narrow):
    with PusherClient(narrow) as page:
        page.subscribe(*(f"channel-{number}" for number in range(MOST)))

        page.send("pusher:subscribe", {"channel": HERE})

        assert 4300 <= page.error() < 4400
        page.subscribe("channel-0")  # which it follows already
        page.send("pusher:unsubscribe", {"channel": "channel-1"})
        page.subscribe(HERE)
        say(narrow)
        assert [1] == heard(page)


# Pings


@pytest.mark.parametrize("data", [None, {}, "", "{}", [], 7])
def test_a_ping_is_answered_by_a_pong(page, data):
    page.send("pusher:ping", data)

    assert {"event": "pusher:pong", "data": "{}"} == page.frame()


def test_a_pong_is_not_answered(page):
    page.send("pusher:pong", {})

    assert [] == page.broadcasts()


# What no page should send


@pytest.mark.parametrize(
    "frame",
    [
        "",
        "{",
        "hello",
        "[]",
        '["pusher:ping"]',
        "null",
        "7",
        "{}",
        '{"event":null}',
        '{"event":7}',
        '{"event":["pusher:ping"]}',
        '{"data":{}}',
        '{"event":""}',
        '{"event":"ping"}',
        '{"event":"Pusher:ping"}',
        '{"event":"client-message","channel":"news","data":{}}',
        '{"event":"pusher:signin","data":{}}',
        '{"event":"pusher:ping","data":"{"}',
        '{"event":"pusher:subscribe"}',
        '{"event":"pusher:subscribe","data":[]}',
        '{"event":"pusher:subscribe","data":"[]"}',
        '{"event":"pusher:subscribe","data":{}}',
        '{"event":"pusher:subscribe","data":{"channel":7}}',
        '{"event":"pusher:subscribe","data":{"channel":null}}',
        '{"event":"pusher:subscribe","data":{"channel":["news"]}}',
        '{"event":"pusher:subscribe","data":{"channel":""}}',
        '{"event":"pusher:subscribe","channel":"news"}',
        f'{{"event":"pusher:subscribe","data":{{"channel":"{"x" * 201}"}}}}',
        '{"event":"pusher:unsubscribe"}',
        '{"event":"pusher:unsubscribe","data":{"channel":{}}}',
        '{"event":"\\ud800"}',
        '{"event":"pusher:subscribe","data":{"channel":"\\ud800"}}',
        "[" * 3_000,
        '{"event":NaN}',
        b"\0\1",
        b'{"event":"pusher:ping","data":{}}',
    ],
)
def test_a_frame_that_is_not_understood_is_an_error_of_the_kind_43_and_the_connection_stays(page, frame):
    page.socket.send(frame)

    assert 4300 <= page.error() < 4400
    assert [] == page.subscribe(HERE).broadcasts()


def test_a_message_over_the_limit_is_a_close_with_1009(narrow):
    with PusherClient(narrow) as page:
        page.send("pusher:ping", {"x": "x" * KIB})

        assert 1009 == page.close_code()


# Ends


def test_a_page_that_leaves_is_forgotten(live):
    before = live.run(held(live))
    pages = [subscribed_page(live).subscribe("news") for _ in range(5)]
    assert before[:2] != live.run(held(live))[:2]

    for number, page in enumerate(pages):
        if number % 2:
            page.socket.close()
        else:
            page.socket.socket.shutdown(socket.SHUT_RDWR)

    assert comes_to_hold(live, before)


def noise(number: int) -> str:
    """As much text as is sent plainly, a little different each time."""
    return f"{number:06}" + "".join(random.Random(number).choices(string.ascii_letters, k=4_000))


def never_reads(live: LiveServer) -> PusherClient:
    """A page with small buffers, which takes nothing until it is asked for its close code."""
    small = socket.socket()
    small.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 * KIB)
    small.settimeout(TIMEOUT)
    small.connect(("127.0.0.1", urlsplit(live.url).port or 0))
    return PusherClient(live, sock=small, max_queue=1).subscribe(HERE)


def is_closing(live: LiveServer) -> bool:
    """Whether the service has closed a connection that has not ended yet."""
    return any(each.connection._protocol.state.name == "CLOSING" for each in list(live.service.gateway._peers))


@pytest.mark.ruling("B4")
def test_a_page_so_slow_that_its_outbox_overflows_is_closed_with_1013_and_others_hear_everything(narrow):
    with never_reads(narrow) as slow, subscribed_page(narrow) as page:
        admin = narrow.client("admin", channel=CHANNEL)
        numbers = count()
        while not is_closing(narrow):
            admin.post("broadcast", json={"data": noise(number := next(numbers))}).raise_for_status()
            assert [noise(number)] == heard(page)

        assert 1013 == slow.close_code()
        say(narrow, "after")
        assert ["after"] == heard(page)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_service_that_stops_closes_its_pages_with_1001(number):
    with server_process() as served:
        with subscribed_page(served) as page, PusherClient(served) as idle:
            served.process.send_signal(number)

            assert [1001, 1001] == [page.close_code(), idle.close_code()]
        assert 0 == served.process.wait(TIMEOUT)


# Anything at all


scalars = (
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(codec="utf-8"), max_size=20)
)
documents = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["channel", "auth", "é"]), inner, max_size=3)
    ),
    max_leaves=6,
)
channels = st.sampled_from([HERE, EVERYWHERE, "news", "private-x", "presence-x", "", "twitch.pubsub.", "x" * 201])
data = st.fixed_dictionaries({"channel": channels | documents}) | documents
events = st.sampled_from(["pusher:subscribe", "pusher:subscribe", "pusher:unsubscribe", "pusher:ping", "pusher:pong"])
frames = st.fixed_dictionaries({"event": events}, optional={"data": data | data.map(json.dumps), "channel": documents})
others = st.fixed_dictionaries({"event": documents | st.text(max_size=70)}, optional={"data": documents})
fragments = st.sampled_from(["{", '"', "\\", "\0", "[" * 2_000, '{"event":', '{"event":"\\ud800"}', "NaN", "\ufeff{}"])
texts = (
    frames.map(json.dumps)
    | frames.map(json.dumps)
    | frames.map(lambda frame: json.dumps(frame, ensure_ascii=False))
    | others.map(json.dumps)
    | st.text(st.characters(codec="utf-8"), max_size=40)
    | fragments
    | st.binary(max_size=20)
)
ANSWERS = {"pusher:error", "pusher:pong", "pusher_internal:subscription_succeeded", "pusher:subscription_error"}
END = "the end"


@pytest.fixture(scope="module")
def fuzzed() -> Iterator[LiveServer]:
    """A service of its own; at the end it is as it was, and has not complained."""
    complaints = BufferingHandler(10_000)
    complaints.setLevel(logging.WARNING)
    logging.getLogger().addHandler(complaints)
    with live_server() as live:
        before = live.run(held(live))
        yield live
        assert comes_to_hold(live, before)
    logging.getLogger().removeHandler(complaints)
    assert [] == [each.getMessage() for each in complaints.buffer if each.name.split(".")[0] in ("emulator", "asyncio")]


def checked(frame: dict[str, Any]) -> dict[str, Any]:
    """An answer, which has to be one that the protocol knows."""
    assert frame["event"] in ANSWERS
    if frame["event"] == "pusher:error":
        assert {"code", "message"} == frame["data"].keys()
        assert 4300 <= frame["data"]["code"] < 4400
    return frame


@settings(max_examples=120, derandomize=True, deadline=None, database=None, suppress_health_check=list(HealthCheck))
@given(conversation=st.lists(texts, min_size=40, max_size=60))
def test_whatever_a_page_sends_each_frame_has_at_most_one_answer_and_the_connection_stays(fuzzed, conversation):
    with PusherClient(fuzzed) as page:
        for text in conversation:
            page.socket.send(text)
        page.send("pusher:subscribe", {"channel": END})
        answers = []
        while (answer := checked(page.answer())).get("channel") != END:
            answers.append(answer)

        assert len(answers) <= len(conversation)
        assert None is page.socket.close_code
        page.send("pusher:unsubscribe", {"channel": HERE})
        assert [] == page.subscribe(HERE).broadcasts()
        say(fuzzed)
        assert [1] == heard(page)
