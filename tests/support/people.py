"""A viewer with tokens from before and after they shared their identity."""

from __future__ import annotations

from itertools import count

from support.authentication import authenticate
from support.service import CHANNEL, Client, RunningService, real_seconds
from support.socket_client import SocketClient

SPELLINGS = ("anonymous", "shared", "named")
"""The tokens of a person."""
_numbers = count(70_001)


class Person:
    """One viewer with three tokens: before sharing, after sharing, and one that names the shared id only."""

    def __init__(self, live: RunningService) -> None:
        self._live = live
        self.exp = real_seconds() + 3_600
        number = next(_numbers)
        self.shared_id, self.opaque_id, self.poll = str(number), f"UOPAQUE{number}X", f"p{number}"
        self.anonymous = self.client(opaque=self.opaque_id)
        self.shared = self.client(opaque=self.opaque_id, user=self.shared_id)
        self.named = self.client(user=self.shared_id)
        self.ids = (self.shared_id, f"U{self.shared_id}", self.opaque_id)
        self.admin = live.client("admin", channel=CHANNEL, exp=self.exp)

    def share(self) -> None:
        """Share the id, and make a write."""
        self.shared.post("accumulate?id=sharing", json=1).raise_for_status()

    def socket(self, spelling: str) -> SocketClient:
        """Return a connection with one of the tokens."""
        game = SocketClient(self._live)
        authenticate(game, jwt=getattr(self, spelling).headers["Authorization"].split()[1])
        return game

    def client(self, **claims: str) -> Client:
        """Return a client with another token of a viewer."""
        return self._live.client("viewer", channel=CHANNEL, exp=self.exp, **claims)
