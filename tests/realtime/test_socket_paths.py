"""The socket's paths, and handshakes that are rejected (ruling X1).

The rule for client ids in paths is in `rules/test_client_ids_of_paths.py`; the rules X1 of `extcli conform` connect at
each path.
"""

from __future__ import annotations

import pytest
from websockets.exceptions import InvalidStatus

from support.service import CLIENT_ID, OTHER_ID, LiveServer
from support.socket_client import SocketClient, request_pin

HTTP_PATHS = ["/v1/e/vote", "//v1/e/vote", "/schema", "/_emulator/clock"]


@pytest.mark.ruling("X1")
@pytest.mark.parametrize("path", HTTP_PATHS)
def test_an_upgrade_at_an_http_path_gets_404_as_json(live, path):
    with pytest.raises(InvalidStatus) as rejected:
        SocketClient(live, path)

    response = rejected.value.response
    assert (404, "application/json") == (response.status_code, response.headers["Content-Type"])
    assert b'"status":404' in response.body


@pytest.mark.ruling("X1")
def test_a_client_id_of_over_100_characters_gets_400(live):
    with pytest.raises(InvalidStatus) as rejected:
        SocketClient(live, f"/0.2.0/{'x' * 101}")

    assert 400 == rejected.value.response.status_code


@pytest.mark.ruling("X1")
def test_the_client_id_in_authenticate_overrides_the_path(live):
    with SocketClient(live, f"/0.2.0/{OTHER_ID}") as game:
        game.data("authenticate", data={"client_id": CLIENT_ID, "pin": request_pin(live)})
        game.data("broadcast", data={"topic": "news", "data": {}})
        error = game.error("authenticate", data={"client_id": OTHER_ID, "pin": request_pin(live)})

    assert 400 == error["status"]


@pytest.mark.ruling("X1")
def test_an_unregistered_client_id_can_connect_but_not_authenticate(production: LiveServer):
    with SocketClient(production, "/0.2.0/unregistered") as game:
        assert 400 == game.error("authenticate", data={"client_id": "unregistered", "pin": "ABCDEF"})["status"]


@pytest.mark.ruling("X1")
def test_the_handshake_selects_no_subprotocol(live):
    with SocketClient(live, subprotocols=["chat"]) as game:
        assert game.socket.subprotocol is None
