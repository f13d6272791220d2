"""Reads an `Authorization` header, and reads and checks the claims of its token (rulings A1, A2). No I/O."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from emulator.auth import refusals
from emulator.contract.names import is_client_id
from emulator.core.callers import EXTENSION_WRITERS, NO_GRANT, Caller, Grant, Role, opaque_id_of

_MAX_HEADER_LENGTH = 8_192
_MIN_UNIX_MS = 10**11
"""A time from here up is in Unix ms, below in seconds."""
SANDBOX_STAGE = "sandbox"
"""The `allowed_stage` of tokens for the sandbox."""
_MAX_SHOWN_ROLE = 40
"""Characters of an unknown role that a refusal shows."""
_ROLES = {role.value: role for role in Role}
_NUMBER_TYPES = (int, float)
"""A constant, because a token has several times, and `int | float` takes longer."""


def split_header(header: str | None) -> tuple[str, str]:
    """Split `<client id> <JWT>`; surrounding double quotes are removed. Raises `Unauthorized`."""
    if not header:
        raise refusals.no_header()
    if len(header) > _MAX_HEADER_LENGTH:
        raise refusals.long_header(limit=_MAX_HEADER_LENGTH)
    parts = header.strip().strip('"').split()
    if len(parts) != 2:
        raise refusals.malformed_header(words=len(parts))
    if parts[0].lower() == "bearer":
        raise refusals.bearer()
    if not is_client_id(parts[0]):
        raise refusals.malformed_client_id()
    return parts[0], parts[1]


def caller_of(client_id: str, claims: Mapping[str, Any], grant: Grant, production: str = "") -> Caller:
    """Build a caller from claims (ruling A2); raises `Unauthorized` naming an invalid claim."""
    role = role_of(claims.get("role"))
    channel_id, user_id = id_claim(claims, "channel_id"), id_claim(claims, "user_id")
    claimed, derived = id_claim(claims, "opaque_user_id"), opaque_id_of(user_id) if user_id else None
    # In the token of a linked game, the service itself derived the opaque id from the channel.
    is_derived = derived is not None and (claimed is None or (bool(grant.link) and claimed == derived))
    opaque_id = claimed or derived or f"A-{role}"
    if role is Role.BROADCASTER:
        channel_id = channel_id or user_id
    return Caller(
        client_id=_interned_text(client_id),
        role=role,
        channel_id=channel_id and _interned_text(channel_id),
        user_id=user_id,
        opaque_id=opaque_id,
        expires_at=claim_in_ms(claims, "exp"),
        grant=grant,
        is_opaque_id_derived=is_derived,
        production=production,
        not_before=claim_in_ms(claims, "nbf") or 0,
        claimed=_describe_unknown_role(claims),
    )


@lru_cache(maxsize=1024)
def _interned_text(text: str) -> str:
    """Return one object for equal texts, so that the many cached callers of a channel hold its id once."""
    return text


def grant_of(claims: Mapping[str, Any]) -> Grant:
    """Return the grant in the claims of an access token that the service issued; an empty grant for any other token."""
    if "link" not in claims and "admitted_by" not in claims:
        return NO_GRANT  # one for all, to save memory
    secret, link = claims.get("admitted_by", ""), claims.get("link", "")
    linked_at = claims.get("linked_at", 0)
    are_texts = isinstance(secret, str) and isinstance(link, str)
    if are_texts and isinstance(linked_at, int) and "use" not in claims:
        return Grant(secret, link, linked_at)
    return NO_GRANT


def check_exp(claims: Mapping[str, Any]) -> int:
    """Return `exp` in ms; raise `Unauthorized` if it is not a number, or so large that it must be in milliseconds."""
    exp = claim_in_ms(claims, "exp")
    if exp is None:
        raise refusals.no_exp()
    if exp >= _MIN_UNIX_MS * 1000:
        raise refusals.exp_in_milliseconds()
    return exp


def check_stage(claims: Mapping[str, Any], *, admits_sandbox: bool = False) -> None:
    """Raise `Forbidden` for a token for the sandbox, and `Unauthorized` for a malformed stage."""
    stage = claims.get("allowed_stage")
    if stage is not None and not isinstance(stage, str):
        raise refusals.malformed_stage()
    if stage == SANDBOX_STAGE and not admits_sandbox:
        raise refusals.refused_stage(stage=stage)


def check_lifetime(claims: Mapping[str, Any]) -> bool:
    """Return whether a token never expires; raise `Unauthorized` unless its role may do without `exp` (ruling A1)."""
    if "exp" in claims:
        check_exp(claims)
        return False
    role = role_of(claims.get("role"))
    if role not in EXTENSION_WRITERS:
        raise refusals.no_exp_of_role(role=role, claimed=_describe_unknown_role(claims))
    return True


def check_client_id(claims: Mapping[str, Any], client_id: str) -> None:
    """Raise `Unauthorized` if the token and the header name different extensions."""
    for name in ("extension_id", "app_id"):
        if name in claims and (id_claim(claims, name) or client_id) != client_id:
            raise refusals.other_extension(claim=name)


def _describe_unknown_role(claims: Mapping[str, Any]) -> str:
    """Return in words what a token has in place of a known role; empty if its role is known."""
    role = claims.get("role")
    if isinstance(role, str) and role in _ROLES:
        return ""
    if "role" not in claims:
        return "the token has no role, which counts as viewer"
    return f"the token's role {json.dumps(role)[:_MAX_SHOWN_ROLE]} counts as viewer"


def role_of(value: Any) -> Role:
    return _ROLES.get(value, Role.VIEWER) if isinstance(value, str) else Role.VIEWER


def id_claim(claims: Mapping[str, Any], name: str) -> str | None:
    value = claims.get(name)
    if value is None:
        return None
    if isinstance(value, int) and not isinstance(value, bool):
        value = str(value)
    if not isinstance(value, str):
        raise refusals.claim_is_no_text(claim=name)
    if not value.isascii() and any("\ud800" <= character <= "\udfff" for character in value):
        raise refusals.forbidden_character(claim=name, character="lone surrogate")
    if "\0" in value:  # engines separate the parts of a key by it, and no snapshot has it
        raise refusals.forbidden_character(claim=name, character="NUL")
    return value or None


def claim_in_ms(claims: Mapping[str, Any], name: str) -> int | None:
    """Return a claim in Unix seconds as milliseconds; raise `Unauthorized` if it is not a number below 1e15."""
    value = claims.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, _NUMBER_TYPES) or not abs(value) < 1e15:
        raise refusals.claim_is_no_time(claim=name)
    return int(value * 1000)
