"""Where the socket is, and what is refused at the handshake (ruling X1)."""

from __future__ import annotations

import pytest
from websockets.exceptions import InvalidStatus

from support.service import CHANNEL, CLIENT_ID, OTHER_ID, LiveServer
from support.socket_client import SocketClient, request_pin

PATHS = [
    "/ws",
    "/ws/",
    "/",
    "",
    f"/{CLIENT_ID}",
    f"/0.2.0/{CLIENT_ID}",
    f"/0.2.0/{CLIENT_ID}/",
    f"/99.0.0-beta/{CLIENT_ID}",
    f"/0.2.0/gateway-unity/1.0.3/{CLIENT_ID}",
    f"/0.2.0/csharp/0.0.1/{CLIENT_ID}",
    f"//0.2.0//{CLIENT_ID}",
    f"//0.2.0/gateway-unity//1.0.3/{CLIENT_ID}",
    "//ws",
    f"/0.2.0/{CLIENT_ID}?game=1",
    "/0.2.0/my%2Dextension",
    f"/0.2.0/{'x' * 100}",
]
NOT_THERE = ["/v1/e/vote", "/v1/e/ws", "//v1/e/vote", "/v1", "/schema", "/schema/openapi.json", "/_emulator/clock"]


@pytest.mark.ruling("X1")
@pytest.mark.parametrize("path", PATHS)
def test_the_socket_is_at_every_path_that_published_clients_open(live, path):
    with SocketClient(live, path) as game:
        assert (
            CHANNEL == game.data("authenticate", data={"client_id": CLIENT_ID, "pin": request_pin(live)})["twitch_id"]
        )


@pytest.mark.ruling("X1")
@pytest.mark.parametrize("path", NOT_THERE)
def test_a_path_of_the_rest_interface_refuses_an_upgrade_with_404_as_json(live, path):
    with pytest.raises(InvalidStatus) as refused:
        SocketClient(live, path)

    response = refused.value.response
    assert (404, "application/json") == (response.status_code, response.headers["Content-Type"])
    assert b'"status":404' in response.body


@pytest.mark.ruling("X1")
def test_the_rest_interface_answers_as_ever_beside_the_socket(viewer):
    assert 200 == viewer().get("vote").status_code


@pytest.mark.ruling("X1")
def test_a_client_id_of_over_100_characters_is_refused_with_400(live):
    with pytest.raises(InvalidStatus) as refused:
        SocketClient(live, f"/0.2.0/{'x' * 101}")

    assert 400 == refused.value.response.status_code


@pytest.mark.ruling("X1")
def test_the_client_id_of_authenticate_decides_and_not_that_of_the_address(live):
    with SocketClient(live, f"/0.2.0/{OTHER_ID}") as game:
        game.data("authenticate", data={"client_id": CLIENT_ID, "pin": request_pin(live)})
        game.data("broadcast", data={"topic": "news", "data": {}})
        error = game.error("authenticate", data={"client_id": OTHER_ID, "pin": request_pin(live)})

    assert 400 == error["status"]


@pytest.mark.ruling("X1")
def test_without_a_client_id_in_authenticate_that_of_the_address_is_taken(live):
    with SocketClient(live, f"/0.2.0/{CLIENT_ID}") as game:
        assert CHANNEL == game.data("authenticate", data={"pin": request_pin(live)})["twitch_id"]


@pytest.mark.ruling("X1")
@pytest.mark.parametrize("path", ["/", "/ws"])
def test_without_a_client_id_anywhere_authenticate_is_400(live, path):
    with SocketClient(live, path) as game:
        assert 400 == game.error("authenticate", data={"pin": request_pin(live)})["status"]


@pytest.mark.ruling("X1")
def test_a_client_id_that_nobody_registered_may_connect_and_fails_to_authenticate(production: LiveServer):
    with SocketClient(production, "/0.2.0/nobody") as game:
        assert 400 == game.error("authenticate", data={"client_id": "nobody", "pin": "ABCDEF"})["status"]


@pytest.mark.ruling("X1")
def test_the_handshake_needs_no_subprotocol_and_agrees_on_none(live):
    with SocketClient(live, subprotocols=["chat"]) as game:
        assert game.socket.subprotocol is None
