"""A viewer with tokens from before and after they shared their identity."""

from __future__ import annotations

from itertools import count
from typing import Any

from support.authentication import authenticate
from support.service import CHANNEL, Client, RunningService, real_seconds
from support.socket_client import SocketClient

SPELLINGS = ("anonymous", "shared", "named")
"""The tokens of a person."""
_numbers = count(70_001)


class Person:
    """One viewer with three tokens: before sharing, after sharing, and one that names the shared id only."""

    def __init__(self, live: RunningService, number: int = 0) -> None:
        self._live = live
        self.exp = real_seconds() + 3_600
        self._number = number = number or next(_numbers)
        self.shared_id, self.opaque_id, self.poll = str(number), f"UOPAQUE{number}X", f"p{number}"
        self.anonymous = self.client(opaque=self.opaque_id)
        self.shared = self.client(opaque=self.opaque_id, user=self.shared_id)
        self.named = self.client(user=self.shared_id)
        self.ids = (self.shared_id, f"U{self.shared_id}", self.opaque_id)
        self.admin = live.client("admin", channel=CHANNEL, exp=self.exp)
        self.backend = live.client("backend", channel=CHANNEL, exp=self.exp)

    def on(self, live: RunningService) -> Person:
        """Return the same person as a client of another node."""
        return Person(live, self._number)

    def share(self) -> None:
        """Share the id, and make a write."""
        self.shared.post("accumulate?id=sharing", json=1).raise_for_status()

    def vote(self, client: Client, value: int, **fields: int) -> dict[str, Any]:
        """Vote in the person's own poll, and return the response body."""
        answer = client.post(f"vote?id={self.poll}", json={"value": value, **fields})
        return dict(answer.json())

    def log(self) -> list[tuple[str, str, int]]:
        """Return identifier, opaque id and value of each entry of that poll's log."""
        entries = self.admin.get(f"vote_logs?id={self.poll}").json()["result"]
        return [(entry["identifier"], entry["opaque"], entry["value"]) for entry in entries]

    def socket(self, spelling: str) -> SocketClient:
        """Return a connection with one of the tokens."""
        game = SocketClient(self._live)
        authenticate(game, jwt=getattr(self, spelling).headers["Authorization"].split()[1])
        return game

    def client(self, **claims: str) -> Client:
        """Return a client with another token of a viewer."""
        return self._live.client("viewer", channel=CHANNEL, exp=self.exp, **claims)
