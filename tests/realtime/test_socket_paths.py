"""The socket's paths and subprotocols, and handshakes that are rejected (ruling X1).

The rule for client ids in paths is in `rules/test_client_ids.py`; the rules X1 of `extcli conform` connect at
each path.
"""

from __future__ import annotations

import pytest
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

from emulator.realtime.connection import Peer
from emulator.realtime.websocket import WebSocket
from support.middleware import Middleware
from support.pusher_client import KEY, QUERY
from support.service import LiveServer, live_server
from support.socket_client import SocketClient


def test_a_client_id_of_over_100_characters_gets_400(live):
    with pytest.raises(InvalidStatus) as rejected:
        SocketClient(live, f"/0.2.0/{'x' * 101}")

    assert 400 == rejected.value.response.status_code


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
    assert ["unexpected failure while opening /ws"] == [each.message for each in caplog.records if each.exc_info]


PATHS = ["/ws", "/0.2.0/my-extension", f"/app/{KEY}{QUERY}", "/_ns/other/ws"]


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("offered", [["json"], ["graphql-ws", "json"], ["access_token", "eyJh.bGci"]])
def test_the_first_subprotocol_offered_is_answered(live: LiveServer, path: str, offered: list[str]):
    with connect(f"{live.url.replace('http', 'ws', 1)}{path}", subprotocols=offered) as socket:  # type: ignore[arg-type]
        assert offered[0] == socket.subprotocol


@pytest.mark.parametrize("path", PATHS)
def test_no_subprotocol_is_answered_to_a_client_that_offers_none(live: LiveServer, path: str):
    with connect(f"{live.url.replace('http', 'ws', 1)}{path}") as socket:
        assert socket.response is not None
        assert "Sec-WebSocket-Protocol" not in socket.response.headers
