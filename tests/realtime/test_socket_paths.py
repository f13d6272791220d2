"""The socket's paths, and handshakes that are rejected (ruling X1).

The rule for client ids in paths is in `rules/test_client_ids_of_paths.py`.
"""

from __future__ import annotations

import pytest
from websockets.exceptions import InvalidStatus

from support.service import CHANNEL, CLIENT_ID, OTHER_ID, LiveServer
from support.socket_client import SocketClient, request_pin

PATHS = [
    "/ws",
    "",
    f"/0.2.0/{CLIENT_ID}",
    f"/0.2.0/gateway-unity/1.0.3/{CLIENT_ID}",
    f"//0.2.0//{CLIENT_ID}/",
    f"/0.2.0/{CLIENT_ID}?game=1",
    "/0.2.0/my%2Dextension",
]
HTTP_PATHS = ["/v1/e/vote", "//v1/e/vote", "/schema", "/_emulator/clock"]


@pytest.mark.ruling("X1")
@pytest.mark.parametrize("path", PATHS)
def test_the_socket_is_at_every_path_that_published_clients_use(live, path):
    with SocketClient(live, path) as game:
        assert (
            CHANNEL == game.data("authenticate", data={"client_id": CLIENT_ID, "pin": request_pin(live)})["twitch_id"]
        )


@pytest.mark.ruling("X1")
@pytest.mark.parametrize("path", HTTP_PATHS)
def test_an_upgrade_at_an_http_path_is_404_as_json(live, path):
    with pytest.raises(InvalidStatus) as rejected:
        SocketClient(live, path)

    response = rejected.value.response
    assert (404, "application/json") == (response.status_code, response.headers["Content-Type"])
    assert b'"status":404' in response.body


@pytest.mark.ruling("X1")
def test_http_works_on_the_same_port(viewer):
    assert 200 == viewer().get("vote").status_code


@pytest.mark.ruling("X1")
def test_a_client_id_of_over_100_characters_is_400(live):
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
def test_authenticate_without_a_client_id_uses_the_path(live):
    with SocketClient(live, f"/0.2.0/{CLIENT_ID}") as game:
        assert CHANNEL == game.data("authenticate", data={"pin": request_pin(live)})["twitch_id"]


@pytest.mark.ruling("X1")
@pytest.mark.parametrize("path", ["/", "/ws"])
def test_authenticate_without_any_client_id_is_400(live, path):
    with SocketClient(live, path) as game:
        assert 400 == game.error("authenticate", data={"pin": request_pin(live)})["status"]


@pytest.mark.ruling("X1")
def test_an_unregistered_client_id_can_connect_but_not_authenticate(production: LiveServer):
    with SocketClient(production, "/0.2.0/unregistered") as game:
        assert 400 == game.error("authenticate", data={"client_id": "unregistered", "pin": "ABCDEF"})["status"]


@pytest.mark.ruling("X1")
def test_the_handshake_selects_no_subprotocol(live):
    with SocketClient(live, subprotocols=["chat"]) as game:
        assert game.socket.subprotocol is None
