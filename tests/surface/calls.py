"""Callers, calls and refusals of the model (Authentication; rulings A2, A3, A4, W8)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

SECOND, MINUTE, HOUR = 1_000, 60_000, 3_600_000
DAY, WEEK = 24 * HOUR, 7 * 24 * HOUR
CHANNEL_WRITERS = ("broadcaster", "admin", "backend")
EXTENSION_WRITERS = ("admin", "backend")


class Refused(Exception):
    """An error response."""

    def __init__(self, status: int, reason: object = ..., *, is_early: bool = False) -> None:
        super().__init__(status, reason)
        self.status, self.reason, self.is_early = status, reason, is_early
        """`is_early` if the request was refused before it counted as a write (A3)."""


@dataclass
class Clock:
    """The service's clock, in ms."""

    now: int


@dataclass(frozen=True)
class Caller:
    """The bearer of a token."""

    client_id: str
    role: str
    user: str | None = None
    channel: str | None = None
    opaque: str | None = None
    token: str = ""
    """The token issued with a PIN. Its channel is known once the PIN is validated."""

    @property
    def opaque_id(self) -> str:
        """The id of a voter or poster, never empty (A3)."""
        return self.opaque or (f"U{self.user}" if self.user else f"A-{self.role}")

    @property
    def own_channel(self) -> str | None:
        """The token's channel; a broadcaster's user id if the token has none (A2)."""
        return self.channel or (self.user if self.role == "broadcaster" else None)


@dataclass(frozen=True)
class Call:
    """One request."""

    caller: Caller
    method: str
    path: str
    query: dict[str, str] = field(default_factory=dict)
    body: Any = None

    @property
    def id(self) -> str:
        """`default` when absent or empty (W8)."""
        return self.query.get("id") or "default"

    @property
    def channel(self) -> str | None:
        """The channel of the call; `None` is all channels together (A4)."""
        if self.caller.role in EXTENSION_WRITERS:
            return self.query.get("channel_id") or self.caller.own_channel
        return self.caller.own_channel or ""

    def only(self, *roles: str) -> None:
        """Raise `Refused` for other roles."""
        if self.caller.role not in roles:
            raise Refused(403, "role is not authorized", is_early=True)


def only_servers_if(is_shared: bool, call: Call) -> None:
    """Refuse a broadcaster who would change what all channels share (A4)."""
    if is_shared and call.caller.role not in EXTENSION_WRITERS:
        raise Refused(403, "role is not authorized")


class ByChannel:
    """Items by client id, channel and id. An item without a channel, or with a `global-` id, has "" there."""

    def __init__(self, *, has_global: bool = True) -> None:
        self.items: dict[tuple[str, str, str], Any] = {}
        self._has_global = has_global

    def key(self, call: Call, item_id: str = "") -> tuple[str, str, str]:
        """The key of the item that the call writes."""
        name = item_id or call.id
        is_global = self._has_global and name.startswith("global-")
        return call.caller.client_id, "" if is_global else call.channel or "", name

    def covered(self, call: Call) -> Iterator[tuple[tuple[str, str, str], Any]]:
        """The items that a read or delete covers: of one channel, or of all with an extension-level token."""
        for key, item in list(self.items.items()):
            in_all = call.channel is None and (key[0], key[2]) == (call.caller.client_id, call.id)
            if in_all or key == self.key(call):
                yield key, item

    def listed(self, call: Call) -> Iterator[tuple[dict[str, str], Any]]:
        """The items of the call's channel, or of all channels, by channel and id. Yields `id` and `channel_id`, too."""
        for key in sorted(self.items):
            client_id, channel, name = key
            if client_id == call.caller.client_id and call.channel in (None, channel):
                yield {"id": name, "channel_id": channel}, self.items[key]

    def expire(self, now: int) -> None:
        """Remove expired items."""
        self.items = {key: item for key, item in self.items.items() if now < item.expires_at}

    def expiries(self) -> list[int]:
        """When the items expire."""
        return [item.expires_at for item in self.items.values()]
