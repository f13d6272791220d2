"""The socket's paths, and handshakes that are rejected (ruling X1).

The rule for client ids in paths is in `rules/test_client_ids_of_paths.py`; the rules X1 of `extcli conform` connect at
each path.
"""

from __future__ import annotations

import pytest
from websockets.exceptions import InvalidStatus

from emulator.realtime.connection import Peer
from emulator.realtime.websocket import WebSocket
from support.middleware import Middleware
from support.service import CLIENT_ID, OTHER_ID, LiveServer, live_server
from support.socket_client import SocketClient, request_pin

HTTP_PATHS = ["/v1/e/vote", "//v1/e/vote", "/schema", "/_emulator/clock"]


@pytest.mark.parametrize("path", HTTP_PATHS)
def test_an_upgrade_at_an_http_path_gets_404_as_json(live, path):
    with pytest.raises(InvalidStatus) as rejected:
        SocketClient(live, path)

    response = rejected.value.response
    assert (404, "application/json") == (response.status_code, response.headers["Content-Type"])
    assert b'"status":404' in response.body


def test_a_client_id_of_over_100_characters_gets_400(live):
    with pytest.raises(InvalidStatus) as rejected:
        SocketClient(live, f"/0.2.0/{'x' * 101}")

    assert 400 == rejected.value.response.status_code


def test_the_client_id_in_authenticate_overrides_the_path(live):
    with SocketClient(live, f"/0.2.0/{OTHER_ID}") as game:
        game.data("authenticate", data={"client_id": CLIENT_ID, "pin": request_pin(live)})
        game.data("broadcast", data={"topic": "news", "data": {}})
        error = game.error("authenticate", data={"client_id": OTHER_ID, "pin": request_pin(live)})

    assert 400 == error["status"]


def test_an_unregistered_client_id_can_connect_but_not_authenticate(production: LiveServer):
    with SocketClient(production, "/0.2.0/unregistered") as game:
        assert 400 == game.error("authenticate", data={"client_id": "unregistered", "pin": "ABCDEF"})["status"]


class Broken(Middleware):
    """An application with a bug."""

    async def open_peer(self, path: str, query: str, connection: WebSocket) -> Peer:
        raise ValueError(path)


def test_a_handshake_that_fails_unexpectedly_is_answered_and_closed(caplog: pytest.LogCaptureFixture):
    request = b"GET /ws HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    request += b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
    with live_server(wrap=Broken) as live:
        answer = live.exchange(request)

    assert answer.startswith(b"HTTP/1.1 500 ")
    assert ["unexpected failure in opening /ws"] == [each.message for each in caplog.records if each.exc_info]
