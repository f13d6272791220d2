"""The table of lifetimes: everything that expires, how to write it, and how to see whether it exists."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from emulator.core.clock import DAY, HOUR, MINUTE, SECOND, WEEK
from support.service import CLIENT_ID, LiveServer
from support.socket_client import SocketClient

START = 2_000_000_000
"""The Unix time in seconds at which every test starts."""
LAST_SECOND = 10**11 - 1
"""The last Unix time in seconds; from 1e11 up, a number is in milliseconds."""


class FrozenService:
    """A service with a stopped clock, and clients whose tokens never expire."""

    def __init__(self, live: LiveServer) -> None:
        self.live = live
        self.pin = self.pin_token = ""
        self.pair: dict[str, Any] = {}
        self.viewer, self.other, self.broadcaster, self.backend = (
            live.client(role, user=user, channel="777", exp=LAST_SECOND)
            for role, user in (("viewer", "1"), ("viewer", "2"), ("broadcaster", "777"), ("backend", "9"))
        )

    def at(self, ms: int) -> FrozenService:
        """Set the clock to `ms` after the start."""
        self.live.service.clock.set(START * SECOND + ms)
        return self

    def vote(self, value: int = 1) -> int:
        return self.viewer.post("vote", json={"value": value}).status_code

    def define(self, **config: object) -> None:
        self.broadcaster.post("vote_config", json={"config": config}).raise_for_status()

    def authenticate(self, **credential: str) -> dict[str, Any]:
        with SocketClient(self.live) as game:
            return dict(game.request("authenticate", data={"client_id": CLIENT_ID, **credential}).get("data", {}))

    def request_pin(self) -> None:
        self.pin = self.broadcaster.post("link/pin").raise_for_status().json()["pin"]

    def has_pin(self) -> bool:
        return bool(self.pin and self.authenticate(pin=self.pin))

    def link_game(self) -> None:
        self.request_pin()
        self.pair = self.authenticate(pin=self.pin)

    def has_access_token(self) -> bool:
        return bool(self.pair) and self.live.bearer(self.pair["jwt"]).get("user_info").status_code == 200

    def has_refresh_token(self) -> bool:
        return bool(self.pair and self.authenticate(refresh=self.pair["refresh"]))

    def request_pin_token(self) -> None:
        issued = self.viewer.post("pin", json={"identifier": CLIENT_ID}).raise_for_status().json()
        self.broadcaster.post("validate_pin", json={"pin": issued["pin"]}).raise_for_status()
        self.pin_token = issued["token"]

    def has_pin_token(self) -> bool:
        return bool(self.pin_token) and self.live.bearer(self.pin_token).get("user_info").status_code == 200

    def has_votes(self) -> bool:
        return self.other.get("vote").json()["count"] > 0

    def has_definition(self) -> bool:
        return self.other.get("vote_config").status_code == 200


@dataclass(frozen=True)
class Item:
    """Something with a lifetime, in ms; `None` is forever."""

    name: str
    sandbox: int
    production: int | None
    write: Callable[[FrozenService], object]
    exists: Callable[[FrozenService], bool]

    def lifetime(self, environment: str) -> int | None:
        return self.sandbox if environment == "sandbox" else self.production


def _store(name: str, sandbox: int, production: int | None) -> Item:
    return Item(
        name,
        sandbox,
        production,
        lambda service: service.backend.post(name, json={"a": 1}),
        lambda service: service.backend.get(name).json() == {"a": 1},
    )


POLL = Item("poll", WEEK, WEEK, FrozenService.vote, FrozenService.has_votes)
LOG = Item(
    "vote log", WEEK, WEEK, FrozenService.vote, lambda service: bool(service.backend.get("vote_logs").json()["result"])
)
DEFINITION = Item("definition", WEEK, WEEK, FrozenService.define, FrozenService.has_definition)
RANKING = Item(
    "ranking",
    DAY,
    DAY,
    lambda service: service.viewer.post("rank", json={"key": "blue"}),
    lambda service: bool(service.backend.get("rank").json()["data"]),
)
BUFFER = Item(
    "accumulation entry",
    DAY,
    DAY,
    lambda service: service.viewer.post("accumulate", json=1),
    lambda service: bool(service.backend.get("accumulate").json()["data"]),
)
STATES = [
    _store(f"{scope}_state", 24 * HOUR, 30 * DAY)
    for scope in ("extension", "channel", "viewer", "extension_viewer", "extension_hidden")
]
CONFIGS = [_store(f"{scope}_config", 24 * HOUR, None) for scope in ("extension", "channel")]
JSON_STORE = _store("json_store", 14 * DAY, 14 * DAY)
PIN = Item("PIN", 5 * MINUTE, 5 * MINUTE, FrozenService.request_pin, FrozenService.has_pin)
PIN_TOKEN = Item("PIN token", WEEK, WEEK, FrozenService.request_pin_token, FrozenService.has_pin_token)
ACCESS_TOKEN = Item("access token", WEEK, WEEK, FrozenService.link_game, FrozenService.has_access_token)
REFRESH_TOKEN = Item("refresh token", 365 * DAY, 365 * DAY, FrozenService.link_game, FrozenService.has_refresh_token)
TOKENS = [PIN, PIN_TOKEN, ACCESS_TOKEN, REFRESH_TOKEN]
ITEMS = [POLL, LOG, DEFINITION, RANKING, BUFFER, *STATES, *CONFIGS, JSON_STORE, *TOKENS]
