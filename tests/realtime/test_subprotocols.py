"""A WebSocket subprotocol that a client offers is answered: browsers fail a connection that answers none."""

from __future__ import annotations

import pytest
from websockets.sync.client import connect

from support.pusher_client import KEY, QUERY
from support.service import LiveServer

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
