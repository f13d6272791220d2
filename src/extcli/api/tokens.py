"""Tokens made and read on this machine: signing with the extension's secret, and explaining what a token says."""

from __future__ import annotations

import base64
import json
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from extcli.config.settings import Identity
from extcli.errors import UsageError
from extcli.output import times

LIFETIME = 15 * 60_000
"""How long a token signed here lives, in ms."""


def claims_of(
    identity: Identity, *, channel: str | None, now: int, lifetime: int = LIFETIME, opaque: str | None = None
) -> dict[str, Any]:
    """The claims of a self-signed token (ruling A2); a broadcaster's user is the channel's owner."""
    user = identity.user or (channel if identity.role == "broadcaster" else None)
    claims = {
        "exp": (now + lifetime) // 1000,
        "role": identity.role,
        "channel_id": channel,
        "user_id": user,
        "opaque_user_id": opaque or (opaque_id(user) if user else None),
    }
    return {name: value for name, value in claims.items() if value is not None}


def opaque_id(user: str) -> str:
    """The opaque id of a logged-in user: `U` and the platform's id."""
    return user if user.startswith("U") else f"U{user}"


def sign(claims: Mapping[str, Any], secret: bytes) -> str:
    """A JWT signed with HS256."""
    import jwt

    with warnings.catch_warnings():
        # The length of the secret is the choice of the platform that hands it out.
        warnings.simplefilter("ignore", jwt.warnings.InsecureKeyLengthWarning)
        return jwt.encode(dict(claims), secret, algorithm="HS256")


@dataclass(frozen=True, slots=True)
class Inspection:
    """What a token says, and what will go wrong with it. Its signature is not checked: that takes the secret."""

    header: Mapping[str, Any]
    claims: Mapping[str, Any]
    traps: list[str]


def inspect(text: str, *, now: int) -> Inspection:
    """Read a token, or the last word of an Authorization header. Raises `UsageError` for what is no JWT."""
    words = text.strip().strip('"').split()
    segments = words[-1].split(".") if words else []
    if len(segments) != 3:
        raise UsageError("this is no token", why=f"a JWT has three parts between dots, this has {len(segments)}")
    header, claims = _segment(segments[0], "header"), _segment(segments[1], "payload")
    return Inspection(header, claims, _traps(header, claims, segments[1], now))


def _segment(segment: str, name: str) -> Mapping[str, Any]:
    try:
        value = json.loads(base64.urlsafe_b64decode(segment.rstrip("=") + "=" * (-len(segment.rstrip("=")) % 4)))
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise UsageError("this is no token", why=f"its {name} is not a JSON object in base64")
    return value


def _traps(header: Mapping[str, Any], claims: Mapping[str, Any], payload: str, now: int) -> list[str]:
    traps = []
    exp = times.instant_of(claims.get("exp"))
    if exp is None:
        traps.append("it has no exp: production refuses it")
    elif exp <= now:
        traps.append(f"it expired {times.span(now - exp)} ago")
    elif exp > now + 366 * 86_400_000:
        traps.append("exp is more than a year away: is it in milliseconds? It must be in seconds")
    not_before = times.instant_of(claims.get("nbf"))
    if not_before is not None and not_before > now:
        traps.append(f"it is not valid for another {times.span(not_before - now)} (nbf)")
    if header.get("alg") != "HS256":
        traps.append(f"it is signed with {header.get('alg')!r}: the service checks HS256")
    if claims.get("allowed_stage") == "sandbox":
        traps.append("its stage is sandbox: production refuses it")
    if claims.get("use") == "pin":
        traps.append("it is dead until the broadcaster has typed in the PIN that came with it (use: pin)")
    if claims.get("use") == "refresh":
        traps.append("it calls nothing: it is exchanged over the socket for a token that does (use: refresh)")
    if "role" not in claims:
        traps.append("it has no role: it counts as viewer")
    if "-" in payload or "_" in payload:
        traps.append("its payload has - or _: the published JavaScript SDK cannot read it and calls it expired")
    return traps
