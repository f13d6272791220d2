"""Authenticates connections of the socket."""

from __future__ import annotations

from typing import Any

from support.service import CHANNEL, CLIENT_ID, Client, LiveServer, RunningService
from support.socket_client import SocketClient


def authenticate(game: SocketClient, client_id: str = CLIENT_ID, **credential: object) -> dict[str, Any]:
    """Authenticate a connection; returns the response, and fails on an error."""
    return game.data("authenticate", data={"client_id": client_id, **credential})


def refused(game: SocketClient, client_id: str = CLIENT_ID, **credential: object) -> tuple[int, str]:
    """Return status and title of the error of an attempt that must fail."""
    error = game.error("authenticate", data={"client_id": client_id, **credential})
    return error["status"], error["title"]


def status_of_pin(live: RunningService, pin: str, client_id: str = CLIENT_ID, *, address: str = "203.0.113.1") -> int:
    """Return the status of an attempt with a PIN on a new connection; `address` counts behind a proxy."""
    with SocketClient(live, additional_headers={"X-Forwarded-For": address}) as game:
        reply = game.request("authenticate", data={"client_id": client_id, "pin": pin})
        return int(reply["errors"][0]["status"]) if "errors" in reply else 200


def unbound_pin(live: RunningService, client_id: str = CLIENT_ID) -> str:
    """Return a new PIN that no broadcaster has validated."""
    with Client(base_url=live.url) as client:
        return str(client.post("/v1/e/link/pin", json={"identifier": client_id}).raise_for_status().json()["pin"])


def authenticated_game(
    live: LiveServer, role: str, channel: str | None = CHANNEL, client_id: str = CLIENT_ID, **claims: Any
) -> SocketClient:
    """Return a connection with the rights of a self-signed token."""
    client = live.client(role, channel=channel, client_id=client_id, **claims)
    game = SocketClient(live, f"/0.2.0/{client_id}")
    authenticate(game, client_id, jwt=client.headers["Authorization"].split()[1])
    return game
