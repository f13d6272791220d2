"""Who is asking, in the service's words (rulings A2, A3, A4)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Role(StrEnum):
    """What a token says its bearer is. A role that is none of these counts as viewer."""

    VIEWER = "viewer"
    BROADCASTER = "broadcaster"
    ADMIN = "admin"
    BACKEND = "backend"


ANYONE = frozenset(Role)
CHANNEL_WRITERS = frozenset({Role.BROADCASTER, Role.ADMIN, Role.BACKEND})
EXTENSION_WRITERS = frozenset({Role.ADMIN, Role.BACKEND})


@dataclass(frozen=True, slots=True)
class Caller:
    """The bearer of a checked token."""

    client_id: str
    role: Role
    channel_id: str | None
    """The token's channel. A broadcaster without one acts for the channel of its `user_id`."""
    user_id: str | None
    """The platform's id, if the user shared it."""
    opaque_id: str
    """Always there: `U…` logged in, `A…` anonymous, `A-<role>` for a token that names no user (ruling A3)."""
    expires_at: int | None = None
    """When the token ends, in ms; `None` for a sandbox token without `exp`."""

    @property
    def identity(self) -> str:
        """The one name by which votes, answers and stores know this user: the shared id, else the opaque one."""
        return self.user_id or self.opaque_id

    @property
    def spans_channels(self) -> bool:
        """Whether `?channel_id=` means anything to this caller. The others never leave their token's channel."""
        return self.role in EXTENSION_WRITERS

    def channel(self, asked: str = "") -> str | None:
        """The channel that this call is about; `None` for an extension-level token, which spans all (ruling A4)."""
        if self.spans_channels:
            return asked or self.channel_id or None
        return self.channel_id or ""
