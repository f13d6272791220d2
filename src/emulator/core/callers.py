"""Callers and their roles (rulings A2, A3, A4)."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Sequence, Set
from typing import NamedTuple, Protocol

from msgspec import Struct

from emulator.contract.names import GLOBAL as GLOBAL
from emulator.contract.names import Role as Role
from emulator.core.errors import OF_ROLES, BadRequest, EngineError, Facts, Forbidden, ServiceError, refusal

_log = logging.getLogger("emulator")


ANYONE = frozenset(Role)
CHANNEL_WRITERS = frozenset({Role.BROADCASTER, Role.ADMIN, Role.BACKEND})
EXTENSION_WRITERS = frozenset({Role.ADMIN, Role.BACKEND})


def opaque_id_of(user_id: str) -> str:
    """Return the opaque id of a user who has no recorded one: `U` and the shared id.

    An id that begins with `U` is unchanged.
    """
    return user_id if user_id.startswith("U") else f"U{user_id}"


_ROLE_REFUSAL = (Forbidden, "role is not authorized")
_SEND_ROLE = "Send a token of the role {instead} (with extcli: `--as {instead}`)"


@refusal(*_ROLE_REFUSAL, OF_ROLES, "The role may not do this", f"{_SEND_ROLE}.")
def role_not_allowed(*, role: str, claimed: str, doing: str, allowed: Sequence[str], instead: str) -> Facts:
    why = f"; {claimed}" if claimed else ""
    detail = f"the role {role} may not {doing}{why}; allowed: {', '.join(sorted(allowed))}"
    return Facts(detail, f"role {role}{why.replace(';', ':', 1)}", f"role {_joined_by_or(allowed)}")


@refusal(*_ROLE_REFUSAL, "A4", "All channels share this id", f"{_SEND_ROLE}, or use an id not beginning with global.")
def shared_by_all_channels(*, role: str, claimed: str, id: str, allowed: Sequence[str], instead: str) -> Facts:
    why = f"; {claimed}" if claimed else ""
    rest = f"so the role {role} may not change it{why}; allowed: {', '.join(sorted(allowed))}"
    return Facts(f"id: all channels share {id}, {rest}", f"role {role}, id {id}", f"role {_joined_by_or(allowed)}")


@refusal(
    BadRequest,
    "Invalid channel",
    "A4",
    "The request names no channel",
    "Use a token with channel_id; as admin or backend, name the channel (with extcli: `--channel ID`).",
)
def no_channel(*, what: str) -> Facts:
    detail = f"{what} needs a channel: use a token with channel_id, or ?channel_id="
    return Facts(detail, "a token without a channel", "a token with channel_id, or ?channel_id= as admin or backend")


def role_error(caller: Caller, allowed: Set[Role], doing: str = "do this") -> ServiceError:
    """Return the error for a role that may not do something."""
    roles = [each for each in Role if each in allowed]
    return role_not_allowed(role=caller.role, claimed=caller.claimed, doing=doing, allowed=roles, instead=roles[0])


def _joined_by_or(roles: Sequence[str]) -> str:
    *others, last = roles
    return f"{', '.join(others)} or {last}" if others else last


def is_global(id: str) -> bool:
    """Whether all channels of the extension share the poll or ranking with this id."""
    return id.startswith(GLOBAL)


def check_extension_wide(caller: Caller, name: str) -> None:
    """Raise `Forbidden` unless the caller may define, replace or delete data of all channels (ruling A4)."""
    if caller.role not in EXTENSION_WRITERS:
        roles = [each for each in Role if each in EXTENSION_WRITERS]
        raise shared_by_all_channels(role=caller.role, claimed=caller.claimed, id=name, allowed=roles, instead=roles[0])


def required_channel(channel: str | None, what: str) -> str:
    """Return the channel; raise `BadRequest` if there is none (ruling A4)."""
    if not channel:
        raise no_channel(what=what)
    return channel


class Grant(NamedTuple):
    """The secret or link that gives a caller its rights, which end with it.

    In the sandbox, which checks no secret, this is only ever a link.
    """

    secret: str = ""
    """The fingerprint of the extension's secret: the one that signed the token, or that admitted its link."""
    link: str = ""
    """The id of the link that an issued token names; empty for a self-signed token."""
    linked_at: int = 0
    """When that link was made, in Unix ms."""


NO_GRANT = Grant()


class Caller(Struct, frozen=True, gc=False):  # many are cached: the garbage collector need not visit them
    """The bearer of a verified token."""

    client_id: str
    role: Role
    channel_id: str | None
    """The token's channel. A broadcaster without one acts for the channel of its `user_id`."""
    user_id: str | None
    """Twitch's user id, if the user shared it."""
    opaque_id: str
    """The user's id in votes, answers and stores (ruling A3).

    Always set: `U…` for a logged-in user, `A…` if anonymous, `A-<role>` if the token names no user.
    """
    expires_at: int | None = None
    """When the token expires, in Unix ms; `None` without `exp`."""
    grant: Grant = NO_GRANT
    is_opaque_id_derived: bool = False
    """Whether the token named a `user_id` only. The user may then be known under another opaque id."""
    production: str = ""
    """The verdict of production on the token, if it differs (`parity.py`); empty in production."""
    hint: str = ""
    """The hint about the key that signed the token (`wrong_keys.py`); empty if there is none, and in production."""
    not_before: int = 0
    """When the token becomes valid, in Unix ms; 0 without `nbf`."""
    claimed: str = ""
    """What the token has in place of a known role, in words, if it counts as viewer for that; else empty."""

    @property
    def ids(self) -> frozenset[str]:
        """All spellings of the user's id: shared or opaque, with and without `U`."""
        given = [each for each in (self.user_id, self.opaque_id) if each]
        return frozenset(given) | frozenset(map(opaque_id_of, given))

    @property
    def spans_channels(self) -> bool:
        """Whether this caller may choose a channel with `?channel_id=`; others are bound to their token's channel."""
        return self.role in EXTENSION_WRITERS

    def channel(self, requested: str = "") -> str | None:
        """The channel to act on; `None` for an extension-level token, which covers all channels (ruling A4)."""
        if self.role in EXTENSION_WRITERS:
            return requested or self.channel_id or None
        return self.channel_id or ""


IdentifiedCaller = tuple[Caller, Awaitable[object] | None]
"""A caller as votes and stores know them, and what ends the recording of their ids, if one has begun.

Await it, even if the request fails.
"""


class IdentifyCaller(Protocol):
    """Completes a caller with the opaque id of their user."""

    async def __call__(self, caller: Caller, *, writes: bool) -> IdentifiedCaller:
        """Return the caller with the opaque id that votes and stores use.

        If the request `writes`, also start to record the user's ids, and return what to await before the response. It
        may raise `EngineError`, although the request's change was saved.
        """


async def finish_recording_ids(recording: Awaitable[object]) -> None:
    """Wait until the ids of a user are written.

    A failure is only logged, because the request's own change may be saved.
    The next write of the user records them.
    """
    try:
        await recording
    except EngineError as error:
        _log.warning("cannot record the ids of a user: %s", error)
