"""Signs any header and any payload, and verifies tokens as production does, without a running service."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from typing import Any

from emulator.auth.signing_key import SigningKey
from emulator.auth.tokens import Tokens
from emulator.core.clock import Clock
from emulator.core.environment import PRODUCTION
from emulator.core.extensions import Extension, Extensions
from emulator.core.settings import Settings
from support.service import CLIENT_ID, SECRET

NOW = 2_000_000_000
"""The Unix time in seconds at which tokens are verified."""
HASHES = {"HS256": hashlib.sha256, "HS384": hashlib.sha384, "HS512": hashlib.sha512}


def segment(value: Any) -> str:
    """Encode a part of a token: bytes as they are, anything else as JSON."""
    data = value if isinstance(value, bytes) else json.dumps(value).encode()
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def signed(header: Any, payload: Any, *, hashed: str = "HS256", key: bytes = SECRET) -> str:
    """Return a token of this header and payload with a valid signature."""
    text = f"{segment(header)}.{segment(payload)}"
    return f"{text}.{segment(hmac.new(key, text.encode(), HASHES[hashed]).digest())}"


def production_tokens(secrets: tuple[bytes, ...] = (SECRET,), clock: Clock | None = None) -> Tokens:
    """Return the verification of a production service at `NOW`, or by another clock, with one extension."""
    clock = clock or Clock(lambda: NOW * 1000)
    extensions = Extensions({CLIENT_ID: Extension(CLIENT_ID, secrets)}, admits_any=False)
    return Tokens(Settings(PRODUCTION), extensions, clock, SigningKey(documents=None, clock=clock))
