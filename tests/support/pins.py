"""Creates, validates and looks up PINs over REST and the socket."""

from __future__ import annotations

import jwt

from support.service import CHANNEL, CLIENT_ID, SECRET, Client, LiveServer
from support.socket_client import SocketClient


def create_pin(client: Client, path: str = "link/pin", **options: object) -> str:
    """Return a new PIN; it is bound if the client is a broadcaster."""
    return str(client.post(path, **options).raise_for_status().json()["pin"])


def validate(client: Client, pin: object) -> int:
    """Return the status of `validate_pin`."""
    return client.post("validate_pin", json={"pin": pin}).status_code


def validated_pin_token(url: str) -> str:
    """Return a token of `POST pin` whose PIN the broadcaster of channel 777 has validated."""
    claims = {"role": "broadcaster", "channel_id": CHANNEL}
    with Client(base_url=f"{url}/v1/e/") as client:
        issued = client.post("pin", json={"identifier": CLIENT_ID}).raise_for_status().json()
        client.headers["Authorization"] = f"{CLIENT_ID} {jwt.encode(claims, SECRET)}"
        assert 200 == validate(client, issued["pin"])
    return str(issued["token"])


def token_exists(client: Client) -> bool:
    """Return whether the client's channel has a token."""
    return bool(client.get("pin_token_exists").raise_for_status().json()["exists"])


def linked_channel(live: LiveServer, pin: str, client_id: str = CLIENT_ID) -> str:
    """Return the channel that a game is linked to if it authenticates with this PIN."""
    with SocketClient(live) as game:
        return str(game.data("authenticate", data={"client_id": client_id, "pin": pin})["twitch_id"])
