"""What the claims of a token mean (ruling A2). Pure."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from emulator.callers import Caller, Grant, Role, opaque_id_of
from emulator.errors import Unauthorized

UNAUTHORIZED = "User was unauthorized to access this resource"
_LEAST_MILLISECONDS = 10**11
"""A time from here up is in Unix ms, below in seconds."""
_ROLES = {role.value: role for role in Role}


def caller_of(client_id: str, claims: Mapping[str, Any], grant: Grant) -> Caller:
    """Build a caller from claims (ruling A2); raises `Unauthorized` naming an invalid claim."""
    role = role_of(claims.get("role"))
    channel_id, user_id = id_of(claims, "channel_id"), id_of(claims, "user_id")
    claimed, derived = id_of(claims, "opaque_user_id"), opaque_id_of(user_id) if user_id else None
    # In the token of a linked game, the service itself derived the opaque id from the channel.
    is_derived = derived is not None and (claimed is None or (bool(grant.link) and claimed == derived))
    opaque_id = claimed or derived or f"A-{role}"
    if role is Role.BROADCASTER:
        channel_id = channel_id or user_id
    channel_id = channel_id and _shared(channel_id)
    return Caller(
        _shared(client_id), role, channel_id, user_id, opaque_id, milliseconds(claims, "exp"), grant, is_derived
    )


@lru_cache(maxsize=1024)
def _shared(text: str) -> str:
    """Return one object for equal texts, so that the many cached callers of a channel hold its id once."""
    return text


def grant_of(claims: Mapping[str, Any]) -> Grant:
    """Return the grant that an issued access token names; an empty one for any other token."""
    secret, link, linked_at = claims.get("admitted_by", ""), claims.get("link", ""), claims.get("linked_at", 0)
    if isinstance(secret, str) and isinstance(link, str) and isinstance(linked_at, int) and "use" not in claims:
        return Grant(secret, link, linked_at)
    return Grant()


def check_exp(claims: Mapping[str, Any]) -> int:
    """Return `exp` in ms; raise `Unauthorized` if it is no number, or so large that it must be in milliseconds."""
    exp = milliseconds(claims, "exp")
    if exp is None:
        raise Unauthorized(UNAUTHORIZED, "malformed token: the claim exp is missing or null, not a number of seconds")
    if exp >= _LEAST_MILLISECONDS * 1000:
        raise Unauthorized(UNAUTHORIZED, "malformed token: the claim exp is in milliseconds, not in seconds")
    return exp


def role_of(value: Any) -> Role:
    return _ROLES.get(value, Role.VIEWER) if isinstance(value, str) else Role.VIEWER


def id_of(claims: Mapping[str, Any], name: str) -> str | None:
    value = claims.get(name)
    if value is None or (type(value) is str and value.isascii()):  # the usual cases
        return value or None
    if isinstance(value, int) and not isinstance(value, bool):
        value = str(value)
    if not isinstance(value, str):
        raise Unauthorized(UNAUTHORIZED, f"malformed token: the claim {name} is neither a string nor a number")
    if not value.isascii() and any("\ud800" <= character <= "\udfff" for character in value):
        raise Unauthorized(UNAUTHORIZED, f"malformed token: the claim {name} has a lone surrogate")
    return value or None


def milliseconds(claims: Mapping[str, Any], name: str) -> int | None:
    """Return a claim in Unix seconds as milliseconds; raise `Unauthorized` if it is no number below 1e15."""
    value = claims.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < 1e15:
        raise Unauthorized(UNAUTHORIZED, f"malformed token: the claim {name} is not a number of seconds")
    return int(value * 1000)
