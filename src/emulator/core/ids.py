"""Unguessable ids and keys, from the system's secure random source."""

from __future__ import annotations

import secrets
import string
from collections.abc import Callable

_ALPHANUMERIC = string.ascii_letters + string.digits
_PIN_CHARACTERS = "ABCDEFGHJKMNPQRSTUVWXYZ2346789"
"""Letters and digits without I, L, O, 0, 1 and 5."""

NewId = Callable[[], str]
"""Makes ids of things that the service stores."""


def _random_text(alphabet: str, length: int) -> str:
    return "".join(secrets.choice(alphabet) for _ in range(length))


def token_id() -> str:
    """Return a `jti`: 22 letters and digits, about 130 bits."""
    return _random_text(_ALPHANUMERIC, 22)


def new_pin() -> str:
    """Return six characters without look-alikes (ruling T1): one of 729 million."""
    return _random_text(_PIN_CHARACTERS, 6)


def new_anonymous_id() -> str:
    """Return the opaque id of an anonymous viewer: `A` and 20 digits, which `stores.rules` recognizes as an id."""
    return "A" + _random_text(string.digits, 20)


def new_signing_key() -> str:
    """Return a key for HS256: 64 hexadecimal digits, 256 bits."""
    return secrets.token_hex(32)
