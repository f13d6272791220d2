"""Reads an `Authorization` header, and reads and checks the claims of its token (rulings A1, A2). No I/O."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from hashlib import blake2b
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from emulator.auth import refusals
from emulator.contract.names import is_client_id
from emulator.core.callers import EXTENSION_WRITERS, Caller, Grant, Role, opaque_id_of

_MAX_HEADER_LENGTH = 8_192
_LEAST_MILLISECONDS = 10**11
"""A time from here up is in Unix ms, below in seconds."""
SANDBOX_STAGE = "sandbox"
"""The `allowed_stage` of tokens for the sandbox."""
_SHOWN = 40
"""Characters of an unknown role that a refusal shows."""
_ROLES = {role.value: role for role in Role}


def digest_of(header: str) -> bytes:
    """Return 128 bits that stand for a header in the cache, in place of its some 300 characters.

    BLAKE2b is a cryptographic hash function. To be taken for another caller, a client would need a header with the
    digest of that caller's, of the 2**128 that there are; two of its own with one digest would gain it nothing.
    """
    text = header.encode() if header.isascii() else header.encode("utf-8", "surrogatepass")
    return blake2b(text).digest()[:16]  # `digest_size=16` takes longer


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
    channel_id, user_id, opaque_id = (id_of(claims, name) for name in ("channel_id", "user_id", "opaque_user_id"))
    expires_at, not_before = milliseconds(claims, "exp"), milliseconds(claims, "nbf") or 0
    caller = _caller(client_id, role, channel_id, user_id, opaque_id, expires_at, grant, production)
    return replace(caller, not_before=not_before, claimed=_claimed_role(claims))


def _caller(
    client_id: str,
    role: Role,
    channel_id: str | None,
    user_id: str | None,
    opaque_id: str | None,
    expires_at: int | None,
    grant: Grant,
    production: str,
) -> Caller:
    """Build a caller from valid claims. An id may be empty or `None` for a claim that is absent."""
    derived = opaque_id_of(user_id) if user_id else f"A-{role}"
    # In the token of a linked game, the service itself derived the opaque id from the channel.
    is_derived = bool(user_id) and (not opaque_id or (bool(grant.link) and opaque_id == derived))
    if role is Role.BROADCASTER:
        channel_id = channel_id or user_id
    channel = _interned_text(channel_id) if channel_id else None
    client_id, opaque_id = _interned_text(client_id), opaque_id or derived
    return Caller(client_id, role, channel, user_id or None, opaque_id, expires_at, grant, is_derived, production)


class _UsualClaims(Struct, forbid_unknown_fields=True):
    """The claims of nearly all tokens, with their usual types. `iat` and those after it have no effect."""

    exp: int
    role: str = ""
    channel_id: str = ""
    user_id: str = ""
    opaque_user_id: str = ""
    iat: int = 0
    jti: str = ""
    is_unlinked: bool = False
    pubsub_perms: dict[str, list[str]] = {}


_usual_claims_of = msgspec.json.Decoder(_UsualClaims).decode


def usual_caller(client_id: str, payload: bytes, grant: Grant, production: str = "") -> Caller | None:
    """Build the caller of a token from its payload, as `caller_of` does; `None` unless all its claims are usual.

    Reading the claims into a struct takes a third of the time of checking them one by one.
    """
    try:
        claims = _usual_claims_of(payload)
    except ValueError:
        return None
    role, exp = _ROLES.get(claims.role), claims.exp
    if role is None or not 0 < exp < _LEAST_MILLISECONDS or not payload.isascii() or b"\\u0000" in payload:
        return None
    ids = claims.channel_id, claims.user_id, claims.opaque_user_id
    return _caller(client_id, role, *ids, exp * 1000, grant, production)


@lru_cache(maxsize=1024)
def _interned_text(text: str) -> str:
    """Return one object for equal texts, so that the many cached callers of a channel hold its id once."""
    return text


def grant_of(claims: Mapping[str, Any]) -> Grant:
    """Return the grant in the claims of an access token that the service issued; an empty grant for any other token."""
    secret, link, linked_at = claims.get("admitted_by", ""), claims.get("link", ""), claims.get("linked_at", 0)
    if isinstance(secret, str) and isinstance(link, str) and isinstance(linked_at, int) and "use" not in claims:
        return Grant(secret, link, linked_at)
    return Grant()


def check_exp(claims: Mapping[str, Any]) -> int:
    """Return `exp` in ms; raise `Unauthorized` if it is not a number, or so large that it must be in milliseconds."""
    exp = milliseconds(claims, "exp")
    if exp is None:
        raise refusals.no_exp()
    if exp >= _LEAST_MILLISECONDS * 1000:
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
        raise refusals.no_exp_of_role(role=role, claimed=_claimed_role(claims))
    return True


def check_client_id(claims: Mapping[str, Any], client_id: str) -> None:
    """Raise `Unauthorized` if the token and the header name different extensions."""
    for name in ("extension_id", "app_id"):
        if (id_of(claims, name) or client_id) != client_id:
            raise refusals.other_extension(claim=name)


def _claimed_role(claims: Mapping[str, Any]) -> str:
    """Return in words what a token has in place of a known role; empty if its role is known."""
    role = claims.get("role")
    if isinstance(role, str) and role in _ROLES:
        return ""
    if "role" not in claims:
        return "the token has no role, which counts as viewer"
    return f"the token's role {json.dumps(role)[:_SHOWN]} counts as viewer"


def role_of(value: Any) -> Role:
    return _ROLES.get(value, Role.VIEWER) if isinstance(value, str) else Role.VIEWER


def id_of(claims: Mapping[str, Any], name: str) -> str | None:
    value = claims.get(name)
    if value is None or (type(value) is str and value.isascii() and "\0" not in value):  # the usual cases
        return value or None
    if isinstance(value, int) and not isinstance(value, bool):
        value = str(value)
    if not isinstance(value, str):
        raise refusals.claim_is_no_text(claim=name)
    if not value.isascii() and any("\ud800" <= character <= "\udfff" for character in value):
        raise refusals.forbidden_character(claim=name, character="lone surrogate")
    if "\0" in value:  # engines separate the parts of a key by it, and no snapshot has it
        raise refusals.forbidden_character(claim=name, character="NUL")
    return value or None


def milliseconds(claims: Mapping[str, Any], name: str) -> int | None:
    """Return a claim in Unix seconds as milliseconds; raise `Unauthorized` if it is not a number below 1e15."""
    value = claims.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < 1e15:
        raise refusals.claim_is_no_time(claim=name)
    return int(value * 1000)
