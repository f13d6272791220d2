"""Who calls the modelled surface, with what, and how a call is refused (Authentication; rulings A2, A3, A4, W8)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

SECOND, MINUTE, HOUR = 1_000, 60_000, 3_600_000
DAY, WEEK = 24 * HOUR, 7 * 24 * HOUR
CHANNEL_WRITERS = ("broadcaster", "admin", "backend")
EXTENSION_WRITERS = ("admin", "backend")


class Refused(Exception):
    """An answer that is an error."""

    def __init__(self, status: int, reason: object = ...) -> None:
        super().__init__(status, reason)
        self.status, self.reason = status, reason


@dataclass
class Time:
    """The service's clock, in ms."""

    now: int


@dataclass(frozen=True)
class Who:
    """The bearer of a token."""

    client_id: str
    role: str
    user: str | None = None
    channel: str | None = None
    opaque: str | None = None
    token: str = ""
    """The token of a PIN; who it speaks for is known when its PIN is validated."""

    @property
    def opaque_id(self) -> str:
        """Always there (A3)."""
        return self.opaque or (f"U{self.user}" if self.user else f"A-{self.role}")

    @property
    def identity(self) -> str:
        """By what a voter or poster is known: the shared id, else the opaque one (A3)."""
        return self.user or self.opaque_id

    @property
    def own_channel(self) -> str | None:
        """A broadcaster without a channel acts for the channel of the user id (A2)."""
        return self.channel or (self.user if self.role == "broadcaster" else None)


@dataclass(frozen=True)
class Call:
    """One request."""

    who: Who
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
        """Where the call acts; `None` is all channels together (A4)."""
        if self.who.role in EXTENSION_WRITERS:
            return self.query.get("channel_id") or self.who.own_channel
        return self.who.own_channel or ""

    def only(self, *roles: str) -> None:
        """Refuse all other roles."""
        if self.who.role not in roles:
            raise Refused(403, "role is not authorized")


class Placed:
    """Things by client id, channel and id; a `global-` id is in no channel, and so is what has none to be in."""

    def __init__(self, *, has_global: bool = True) -> None:
        self.things: dict[tuple[str, str, str], Any] = {}
        self._has_global = has_global

    def key(self, call: Call, thing_id: str = "") -> tuple[str, str, str]:
        """Where a write goes."""
        name = thing_id or call.id
        is_global = self._has_global and name.startswith("global-")
        return call.who.client_id, "" if is_global else call.channel or "", name

    def covered(self, call: Call) -> Iterator[tuple[tuple[str, str, str], Any]]:
        """What a reading or a deletion covers: one channel's, or all channels' for an extension-level token."""
        for key, thing in list(self.things.items()):
            in_all = call.channel is None and (key[0], key[2]) == (call.who.client_id, call.id)
            if in_all or key == self.key(call):
                yield key, thing

    def end(self, now: int) -> None:
        """Whatever is past its end is gone."""
        self.things = {key: thing for key, thing in self.things.items() if now < thing.ends}

    def ends(self) -> list[int]:
        """When that is."""
        return [thing.ends for thing in self.things.values()]
