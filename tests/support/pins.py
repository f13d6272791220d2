"""Creates, validates and looks up PINs over REST and the socket."""

from __future__ import annotations

from support.service import CLIENT_ID, Client, LiveServer
from support.socket_client import SocketClient


def create_pin(client: Client, path: str = "link/pin", **options: object) -> str:
    """Return a new PIN; it is bound if the client is a broadcaster."""
    return str(client.post(path, **options).raise_for_status().json()["pin"])


def validate(client: Client, pin: object) -> int:
    """Return the status of `validate_pin`."""
    return client.post("validate_pin", json={"pin": pin}).status_code


def token_exists(client: Client) -> bool:
    """Return whether the client's channel has a token."""
    return bool(client.get("pin_token_exists").raise_for_status().json()["exists"])


def linked_channel(live: LiveServer, pin: str, client_id: str = CLIENT_ID) -> str:
    """Return the channel that a game is linked to if it authenticates with this PIN."""
    with SocketClient(live) as game:
        return str(game.data("authenticate", data={"client_id": client_id, "pin": pin})["twitch_id"])
