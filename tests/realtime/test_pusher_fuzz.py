"""Fuzzing of the Pusher protocol: each message has at most one response, and nothing fails or leaks (ruling B4)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from realtime.resources import leak_checked_server
from support.examples import examples
from support.pusher_client import PusherClient, pusher_channel
from support.service import CHANNEL, LiveServer

HERE, EVERYWHERE = pusher_channel(), pusher_channel("all")

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
    with leak_checked_server() as live:
        yield live


def in_protocol(frame: dict[str, Any]) -> dict[str, Any]:
    """Return a response, after checking that it belongs to the protocol."""
    assert frame["event"] in ANSWERS
    if frame["event"] == "pusher:error":
        assert {"code", "message"} == frame["data"].keys()
        assert 4300 <= frame["data"]["code"] < 4400
    return frame


@settings(
    max_examples=examples(60), derandomize=True, deadline=None, database=None, suppress_health_check=list(HealthCheck)
)
@given(conversation=st.lists(texts, min_size=40, max_size=60))
def test_each_message_has_at_most_one_response(fuzzed, conversation):
    with PusherClient(fuzzed) as page:
        for text in conversation:
            page.socket.send(text)
        page.send("pusher:subscribe", {"channel": END})
        answers = []
        while (answer := in_protocol(page.reply())).get("channel") != END:
            answers.append(answer)

        assert len(answers) <= len(conversation)
        assert None is page.socket.close_code
        page.send("pusher:unsubscribe", {"channel": HERE})
        assert [] == page.subscribe(HERE).broadcasts()
        admin = fuzzed.client("admin", user="9001", channel=CHANNEL)
        admin.post("broadcast", json={"data": 1}).raise_for_status()
        assert [1] == [each.data for each in page.broadcasts()]
