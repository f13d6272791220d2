"""Names that nobody can guess, from the system's secure source."""

from __future__ import annotations

import secrets
import string

_ALPHANUMERIC = string.ascii_letters + string.digits
_UNMISTAKABLE = "ABCDEFGHJKMNPQRSTUVWXYZ2346789"
"""Without I, L, O, 0, 1 and 5."""


def token_id() -> str:
    """A `jti`: 22 letters and digits, about 130 bits."""
    return "".join(secrets.choice(_ALPHANUMERIC) for _ in range(22))


def pin() -> str:
    """Six characters that nobody takes for others (ruling T1): one of 729 million."""
    return "".join(secrets.choice(_UNMISTAKABLE) for _ in range(6))


def anonymous_id() -> str:
    """An opaque id for a viewer who is not logged in: `A` and 20 digits.

    Digits, so that it is known for an id where an admin patches many users (`stores.rules`).
    """
    return "A" + "".join(secrets.choice(string.digits) for _ in range(20))


def signing_key() -> str:
    """64 hexadecimal digits, 256 bits: a key for HS256."""
    return secrets.token_hex(32)
