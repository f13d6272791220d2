"""Refused socket messages, refused handshakes and closed sockets are explained."""

from __future__ import annotations

from typing import Any

import pytest
from websockets.exceptions import InvalidStatus

from support.explanations import latest, why
from support.pusher_client import PusherClient
from support.service import CLIENT_ID, LiveServer
from support.socket_client import SocketClient


@pytest.mark.parametrize(
    ("action", "target", "data", "rule", "held", "needed"),
    [
        ("nope", "", {}, "X9", "action 'nope'", "one of authenticate"),
        ("get", "drops", {}, "X9", "target drops", "a target of this service"),
        ("get", "nothing", {}, "X9", "target nothing", "one of"),
        ("get", "state", {"state_id": "x"}, "S2", "x", "one of"),
        ("subscribe", "", {}, "X3", "no target", "params.target"),
        ("authenticate", "", {"client_id": CLIENT_ID, "pin": "AAAAAA"}, "T3", "a PIN", "five minutes"),
        ("authenticate", "", {"client_id": CLIENT_ID, "refresh": "x"}, "T3", "a refresh token", "a valid one"),
        ("authenticate", "", {"client_id": CLIENT_ID}, "X4", "none or several", "exactly one"),
        ("set", "state", {"state_id": "channel", "state": {"a": "x" * 70_000}}, "X3", "bytes", "at most 65536 bytes"),
    ],
)
def test_a_refused_socket_request_is_explained(
    live: LiveServer,
    game: SocketClient,
    action: str,
    target: str,
    data: dict[str, Any],
    rule: str,
    held: str,
    needed: str,
):
    game.error(action, target, data)

    found = latest(live)

    assert "frame" == found["entry"]["kind"]
    assert rule == found["explanation"]["rule"]
    assert held in found["explanation"]["held"]
    assert needed in found["explanation"]["needed"]


def test_a_message_that_is_not_json_is_explained(live: LiveServer, game: SocketClient):
    game.socket.send("{")
    game.message()

    assert ("X3", "a JSON object") == (latest(live)["explanation"]["rule"], latest(live)["explanation"]["needed"])


def test_a_refused_handshake_is_explained(live: LiveServer):
    with pytest.raises(InvalidStatus) as refused:
        SocketClient(live, "/v1/x")

    explanation = why(live, refused.value.response.headers["x-request-id"])
    assert ("X1", "path /v1/x") == (explanation["rule"], explanation["held"])


@pytest.mark.parametrize(
    ("send", "rule", "needed"),
    [
        (lambda page: page.send("nope"), "B1", "pusher:subscribe"),
        (lambda page: page.send("pusher:subscribe", {"channel": ""}), "X3", "1 to 200 characters"),
        (lambda page: page.send("pusher:subscribe", {"channel": "private-x"}), "B1", "a public channel"),
    ],
    ids=["event", "channel", "private"],
)
def test_a_refused_message_of_a_page_is_explained(live: LiveServer, page: PusherClient, send, rule: str, needed: str):
    send(page)
    page.frame()

    explanation = latest(live)["explanation"]
    assert rule == explanation["rule"]
    assert needed in explanation["needed"]


@pytest.mark.parametrize(
    ("send", "code", "held"),
    [(b"\0", 1003, "a binary message"), ("x" * 5_000, 1009, "5000 bytes")],
    ids=["binary", "large"],
)
def test_a_closed_socket_is_explained(
    live: LiveServer, unlinked: SocketClient, send: bytes | str, code: int, held: str
):
    unlinked.socket.send(send)
    assert code == unlinked.close_code()

    found = latest(live)

    assert (code, "X3") == (found["entry"]["status"], found["explanation"]["rule"])
    assert held in found["explanation"]["held"]
    assert found["explanation"] == why(live, found["entry"]["detail"])


@pytest.mark.parametrize(
    ("reason", "rule"), [("text frames only", "X3"), ("replaced by a newer connection", "gaps: Links and sockets")]
)
def test_the_reason_of_a_closed_socket_is_explained(live: LiveServer, reason: str, rule: str):
    assert rule == why(live, reason)["rule"]
