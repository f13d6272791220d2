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
    ("action", "target", "data", "rule", "held"),
    [
        ("nope", "", {}, "X9", "action 'nope'"),
        ("get", "drops", {}, "X9", "target drops"),
        ("get", "state", {"state_id": "x"}, "S2", "x"),
        ("subscribe", "", {}, "X3", "no target"),
        ("authenticate", "", {"client_id": CLIENT_ID, "pin": "AAAAAA"}, "T3", "a PIN"),
        ("authenticate", "", {"client_id": CLIENT_ID}, "X4", "none or several"),
        ("set", "state", {"state_id": "channel", "state": {"a": "x" * 70_000}}, "X3", "bytes"),
    ],
)
def test_a_refused_socket_request_is_explained(
    live: LiveServer, game: SocketClient, action: str, target: str, data: dict[str, Any], rule: str, held: str
):
    game.error(action, target, data)

    found = latest(live)
    assert ("frame", rule) == (found["entry"]["kind"], found["explanation"]["rule"])
    assert held in found["explanation"]["held"]


@pytest.mark.parametrize(
    ("event", "channel", "rule"), [("nope", None, "B1"), ("subscribe", "", "X3"), ("subscribe", "private-x", "B1")]
)
def test_a_refused_message_of_a_page_is_explained(live: LiveServer, page: PusherClient, event, channel, rule: str):
    page.send(f"pusher:{event}", {} if channel is None else {"channel": channel})
    page.frame()

    assert rule == latest(live)["explanation"]["rule"]


def test_a_refused_handshake_is_explained(live: LiveServer):
    with pytest.raises(InvalidStatus) as refused:
        SocketClient(live, "/v1/x")

    explanation = why(live, refused.value.response.headers["x-request-id"])
    assert ("X1", "path /v1/x") == (explanation["rule"], explanation["held"])


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
