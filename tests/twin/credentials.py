"""Who calls: extensions, users, and tokens that are valid or wrong in one of many ways."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import random
from typing import Any

ROLES = ("viewer", "broadcaster", "admin", "backend")
USERS = ("5", "6", "777", "U9", None)
ADDRESSES = ("192.0.2.1", "192.0.2.2", "198.51.100.7")
SECOND, MINUTE, HOUR, DAY = 1_000, 60_000, 3_600_000, 86_400_000
EXTENSIONS = 40
"""Registered extensions: each episode uses the next one."""
_HASHES = {"HS256": hashlib.sha256, "HS384": hashlib.sha384, "HS512": hashlib.sha512}
_KINDS = [
    *(["valid"] * 90), "previous secret", "wrong secret", "no exp", "past", "exp in ms", "exp null", "exp text",
    "stage", "other stage", "number as stage", "other extension", "other app", "unregistered", "future", "refresh",
    "garbage", "alone", "none", "unsigned", "bearer", "nul", "hs512", "no channel", "other channel", "no role",
    "odd role", "exp fraction", "huge exp", "opaque", "client id only", "lower case", "two spaces", "empty",
    "pin token", "pin token", "pin token", "sandbox token", "sandbox token", "payload list", "signature cut",
]  # fmt: skip


def client_id(number: int) -> str:
    return f"twin-{number % EXTENSIONS}"


def secret(of: str) -> bytes:
    """Return the present secret of an extension."""
    return f"the secret of {of}, which is long enough".encode()


def extensions_file() -> str:
    """Return the file that registers the extensions, each with a present and a previous secret."""
    lines = []
    for number in range(EXTENSIONS):
        name = client_id(number)
        secrets = [base64.b64encode(each).decode() for each in (secret(name), b"the previous " + secret(name))]
        lines += [f"[extensions.{name}]", f"secrets = {json.dumps(secrets)}", 'owner_user_id = "5"', ""]
    return "\n".join(lines)


def _segment(value: Any) -> str:
    data = value if isinstance(value, bytes) else json.dumps(value, separators=(",", ":")).encode()
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def signed(claims: Any, key: bytes, algorithm: str = "HS256") -> str:
    """Return a token."""
    text = f"{_segment({'alg': algorithm, 'typ': 'JWT'})}.{_segment(claims)}"
    return f"{text}.{_segment(hmac.new(key, text.encode(), _HASHES[algorithm]).digest())}"


class Credentials:
    """Chooses `Authorization` headers for the extension of one episode."""

    def __init__(self, chosen: random.Random, name: str, other: str, channel: str) -> None:
        self.random, self.name, self.other, self.channel = chosen, name, other, channel

    def token(self, role: str, now: int, *, user: str | None = "5", channel: str | None = "", **claims: Any) -> str:
        """Return a valid token, for an hour; of the episode's channel unless another is named."""
        payload = {"role": role, "exp": (now + HOUR) // SECOND, **claims}
        payload |= {"channel_id": self.channel if channel == "" else channel} if channel is not None else {}
        payload |= {"user_id": user} if user else {}
        return signed(payload, secret(self.name))

    def header(self, role: str, now: int, **claims: Any) -> str:
        return f"{self.name} {self.token(role, now, **claims)}"

    def any(self, now: int, roles: tuple[str, ...] = ROLES) -> tuple[str, str]:
        """Return a header and the kind of its token; the header may have a marker of a captured token."""
        chosen = self.random
        kind, role, user = chosen.choice(_KINDS), chosen.choice(roles), chosen.choice(USERS)
        claims: dict[str, Any] = {"role": role, "channel_id": self.channel, "exp": (now + HOUR) // SECOND}
        if user:
            claims["user_id"] = user
        if role in ("backend", "admin") and chosen.random() < 0.3:
            del claims["channel_id"]
        return self._altered(kind, claims, now), f"{role} {user} {kind}"

    def _altered(self, kind: str, claims: dict[str, Any], now: int) -> str:
        seconds = now // SECOND
        changes: dict[str, dict[str, Any]] = {
            "past": {"exp": seconds - self.random.choice([0, 1, 3600])},
            "exp in ms": {"exp": now},
            "exp null": {"exp": None},
            "exp text": {"exp": "tomorrow"},
            "exp fraction": {"exp": seconds + 3600.5},
            "huge exp": {"exp": 10**30},
            "stage": {"allowed_stage": "sandbox"},
            "other stage": {"allowed_stage": "production"},
            "number as stage": {"allowed_stage": 1},
            "other extension": {"extension_id": self.other},
            "other app": {"app_id": self.other},
            "future": {"nbf": seconds + 3600, "iat": seconds + 3600},
            "refresh": {"use": "refresh"},
            "nul": {"user_id": "a\0b"},
            "other channel": {"channel_id": "4242"},
            "odd role": {"role": self.random.choice(["moderator", "", 5, None, "Viewer", ["admin"]])},
            "opaque": {"opaque_user_id": self.random.choice(["U5", "A123", "", "x" * 300, 7, "U\n"])},
        }
        sent: Any = claims | changes.get(kind, {})
        for name in {"no exp": ["exp"], "no channel": ["channel_id"], "no role": ["role"]}.get(kind, []):
            sent.pop(name, None)
        if kind == "payload list":
            sent = [1]
        key = {"previous secret": b"the previous " + secret(self.name), "wrong secret": b"no secret of it, at all"}
        token = signed(sent, key.get(kind, secret(self.name)), "HS512" if kind == "hs512" else "HS256")
        whole = {
            "unregistered": f"no-such-extension {token}",
            "garbage": f"{self.name} nothing.like.this",
            "alone": token,
            "none": "",
            "client id only": self.name,
            "unsigned": f"{self.name} {_segment({'alg': 'none'})}.{_segment(sent)}.",
            "bearer": f"Bearer {token}",
            "lower case": f"{self.name.upper()} {token}",
            "two spaces": f"{self.name}  {token}",
            "empty": " ",
            "pin token": f"{self.name} @@pin token@@",
            "sandbox token": f"{self.name} @@token@@",
            "signature cut": f"{self.name} {token[:-3]}",
        }
        return whole.get(kind, f"{self.name} {token}")
