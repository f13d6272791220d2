"""A request without upgrade to the address of a WebSocket gets 426, which says what is missing (RFC 9110)."""

from __future__ import annotations

import pytest

from support.pusher_client import KEY, QUERY
from support.service import Client

ADDRESSES = [
    "/ws",
    "/ws/",
    "/0.2.0/my-extension",
    "/0.2.0/projection/my-extension?x=1",
    f"/app/{KEY}{QUERY}",
    "/_ns/other/ws",
    f"/_ns/other/app/{KEY}",
]


@pytest.mark.parametrize("address", ADDRESSES)
@pytest.mark.parametrize("headers", [{}, {"Upgrade": "h2c", "Connection": "Upgrade"}], ids=["none", "another"])
def test_a_request_without_upgrade_to_a_socket_gets_426(stranger: Client, address: str, headers: dict[str, str]):
    answer = stranger.get(address, headers=headers)

    assert (426, "websocket", "upgrade") == (
        answer.status_code,
        answer.headers["upgrade"],
        answer.headers["connection"].lower(),
    )
    assert "Upgrade Required" == answer.json()["reason"]
    assert "Upgrade: websocket" in answer.json()["info"]


def test_head_of_a_sockets_address_gets_426(stranger: Client):
    assert (426, b"") == ((answer := stranger.head("/ws")).status_code, answer.content)


@pytest.mark.parametrize("address", ["/wsx", "/0.2.0", "/app", "/v1/e/ws", "/_emulator/ws", "/ws/a/b/c/d/e/f"])
def test_other_unknown_paths_are_still_not_found(stranger: Client, address: str):
    assert 404 == stranger.get(address).status_code


def test_other_methods_at_a_sockets_address_are_not_found(stranger: Client):
    assert 404 == stranger.post("/ws").status_code
