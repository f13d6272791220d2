"""Signs tokens with the extension's secret, and explains tokens. Sends nothing."""

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
"""The default lifetime of a self-signed token, in ms."""


def claims_of(
    identity: Identity, *, channel: str | None, now: int, lifetime: int = LIFETIME, opaque: str | None = None
) -> dict[str, Any]:
    """Return the claims of a self-signed token (ruling A2). A broadcaster's user is the owner of the channel."""
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
    """Return the opaque id of a logged-in user: `U` and Twitch's id."""
    return user if user.startswith("U") else f"U{user}"


def sign(claims: Mapping[str, Any], secret: bytes) -> str:
    """Return a JWT signed with HS256."""
    import jwt

    with warnings.catch_warnings():
        # Twitch chooses the length of the secret.
        warnings.simplefilter("ignore", jwt.warnings.InsecureKeyLengthWarning)
        return jwt.encode(dict(claims), secret, algorithm="HS256")


@dataclass(frozen=True, slots=True)
class Inspection:
    """The content of a token, and the reasons why services may refuse it. The signature is not checked."""

    header: Mapping[str, Any]
    claims: Mapping[str, Any]
    traps: list[str]


def inspect(text: str, *, now: int) -> Inspection:
    """Decode a token, or the last word of an Authorization header. Raises `UsageError`."""
    words = text.strip().strip('"').split()
    segments = words[-1].split(".") if words else []
    if len(segments) != 3:
        raise UsageError("this is not a token", why=f"a JWT has three parts separated by dots, not {len(segments)}")
    header, claims = _segment(segments[0], "header"), _segment(segments[1], "payload")
    return Inspection(header, claims, _likely_refusals(header, claims, segments[1], now))


def claims_in(token: str) -> Mapping[str, Any]:
    """Return the claims of a token; empty if it is not a JWT."""
    try:
        return inspect(token, now=0).claims
    except UsageError:
        return {}


def _segment(segment: str, name: str) -> Mapping[str, Any]:
    try:
        value = json.loads(base64.urlsafe_b64decode(segment.rstrip("=") + "=" * (-len(segment.rstrip("=")) % 4)))
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise UsageError("this is not a token", why=f"its {name} is not a JSON object in base64")
    return value


def _likely_refusals(header: Mapping[str, Any], claims: Mapping[str, Any], payload: str, now: int) -> list[str]:
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
        traps.append(f"it is signed with {header.get('alg')!r}: the service requires HS256")
    if claims.get("allowed_stage") == "sandbox":
        traps.append("its stage is sandbox: production refuses it")
    if claims.get("use") == "pin":
        traps.append(
            "it is valid only after the broadcaster has entered the PIN that was issued with it: `extcli pin status`"
            " says whether a game of the channel is linked (use: pin)"
        )
    if claims.get("use") == "refresh":
        traps.append("it is for no endpoint: exchange it over the WebSocket for an access token (use: refresh)")
    if "role" not in claims:
        traps.append("it has no role: it counts as viewer")
    if "-" in payload or "_" in payload:
        traps.append("its payload has - or _: the published JavaScript SDK cannot decode it and reports it as expired")
    return traps
