"""Everything that one secret of an extension can admit in a channel, and what of it still works."""

from __future__ import annotations

from collections.abc import Mapping

from websockets.exceptions import ConnectionClosed

from support.authentication import authenticate, unbound_pin
from support.pins import create_pin, validate
from support.service import CHANNEL, CLIENT_ID, Client, RunningService, real_seconds
from support.socket_client import SocketClient

VIOLATION = 1008


def owner(live: RunningService, key: bytes, channel: str = CHANNEL, client_id: str = CLIENT_ID) -> Client:
    """A broadcaster with a token signed with this secret."""
    return live.client(
        "broadcaster", user=channel, channel=channel, client_id=client_id, key=key, exp=real_seconds() + 600
    )


def token_of(client: Client) -> str:
    return str(client.headers["Authorization"].split()[1])


class Holding:
    """Everything that a secret can admit in one channel."""

    def __init__(self, live: RunningService, key: bytes, channel: str = CHANNEL, client_id: str = CLIENT_ID) -> None:
        self.live, self.client_id, self.channel = live, client_id, channel
        self.owner = owner(live, key, channel, client_id)
        self.bound_pin = create_pin(self.owner)
        self.validated_pin = unbound_pin(live, client_id)
        assert 200 == validate(self.owner, self.validated_pin)
        self.by_pin, self.by_jwt = SocketClient(live), SocketClient(live)
        self.pair = authenticate(self.by_pin, client_id, pin=self.bound_pin)
        authenticate(self.by_jwt, client_id, jwt=token_of(self.owner))
        with Client(base_url=live.url) as anyone:
            issued = anyone.post("/v1/e/pin", json={"identifier": client_id}).raise_for_status().json()
        self.pin_token = str(issued["token"])
        assert 200 == validate(self.owner, issued["pin"])

    def working(self) -> dict[str, bool]:
        """What of it still works."""
        bearer = {
            name: self.live.bearer(token, client_id=self.client_id).get("user_info").status_code == 200
            for name, token in (
                ("self-signed token", token_of(self.owner)),
                ("access token", self.pair["jwt"]),
                ("PIN token", self.pin_token),
            )
        }
        logins = {
            name: self._logs_in(**credential)
            for name, credential in {
                "bound PIN": {"pin": self.bound_pin},
                "validated PIN": {"pin": self.validated_pin},
                "refresh token": {"refresh": self.pair["refresh"]},
                "jwt login with the access token": {"jwt": self.pair["jwt"]},
                "jwt login with the PIN token": {"jwt": self.pin_token},
            }.items()
        }
        sockets = {"socket by PIN": _is_open(self.by_pin), "socket by JWT": _is_open(self.by_jwt)}
        return {**bearer, **logins, **sockets}

    def _logs_in(self, **credential: str) -> bool:
        with SocketClient(self.live) as game:
            return "data" in game.request("authenticate", data={"client_id": self.client_id, **credential})


def _is_open(game: SocketClient) -> bool:
    """Whether a connection can write; a closed one was closed as a violation of the rules."""
    try:
        game.data("set", "state", {"state_id": "channel", "state": {}})
    except ConnectionClosed:
        assert VIOLATION == game.close_code()
        return False
    return True


def all_are(working: Mapping[str, bool], expected: bool, *, but: Mapping[str, bool] | None = None) -> bool:
    return {**dict.fromkeys(working, expected), **(but or {})} == working
