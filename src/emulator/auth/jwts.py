"""Verifying and signing JWTs with pyjwt, whose only user this is (rulings A1, A5)."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from typing import Any

from emulator.auth import refusals

# Without cryptography, pyjwt has the one algorithm that is used here, and a process takes 10 MB less.
_absent = "cryptography" not in sys.modules
if _absent:
    sys.modules["cryptography"] = None  # type: ignore[assignment]
import jwt  # noqa: E402
from jwt.warnings import InsecureKeyLengthWarning as InsecureKeyLengthWarning  # noqa: E402

if _absent:
    del sys.modules["cryptography"]

_FORBIDDEN_HEADERS = {"jku", "jwk", "x5u", "x5c", "x5t", "x5t#S256", "crit", "b64"}
"""Header fields that supply a key or change how the token is verified. `kid` is allowed but ignored: some libraries
always add it."""

# Lifetimes are checked against the service's clock, not pyjwt's.
_UNVERIFIED: Any = {"verify_signature": False}
_CLAIMS = ("exp", "nbf", "iat", "aud", "iss", "sub", "jti")
_SIGNATURE_ONLY: Any = {f"verify_{claim}": False for claim in _CLAIMS}
_MALFORMED = (jwt.InvalidTokenError, RecursionError, ValueError)


class _PlainBase64Encoder(json.JSONEncoder):
    """Escapes `>`, `?`, `~` and DEL, so that the base64url payload contains no `-` or `_` (ruling A5)."""

    def encode(self, o: Any) -> str:
        text = super().encode(o)
        for character in ">?~\x7f":
            text = text.replace(character, f"\\u{ord(character):04x}")
        return text


def sign(claims: Mapping[str, Any], key: bytes) -> str:
    return jwt.encode(dict(claims), key, algorithm="HS256", json_encoder=_PlainBase64Encoder)


def verified(token: str, keys: Mapping[str, bytes]) -> tuple[Mapping[str, Any], str]:
    """Return the claims, and the name of the first of `keys` that signed the token. Raises `Unauthorized`."""
    _check_header(token)
    for name, key in keys.items():
        try:
            return _decode(token, key), name
        except jwt.InvalidSignatureError:
            continue
        except _MALFORMED:
            raise refusals.not_a_jwt() from None
    raise refusals.bad_signature()


def unverified(token: str) -> Mapping[str, Any]:
    """Return the claims of a token with any signature, or none. Raises `Unauthorized`."""
    try:
        header_and_claims = ".".join(token.split(".")[:2])
        claims: Mapping[str, Any] = jwt.decode(f"{header_and_claims}.", options=_UNVERIFIED)
    except _MALFORMED:
        raise refusals.no_shape_of_a_jwt(parts=token.count(".") + 1) from None
    return claims


def accepts(key: bytes) -> bool:
    """Whether pyjwt verifies tokens with this key. It refuses text that looks like a public key, certificate or JWK."""
    try:
        return bool(_decode(sign({"is": "accepted"}, key), key))
    except (jwt.PyJWTError, *_MALFORMED):
        return False


def _decode(token: str, key: bytes) -> Mapping[str, Any]:
    claims: Mapping[str, Any] = jwt.decode(token, key, algorithms=["HS256"], options=_SIGNATURE_ONLY)
    return claims


def _check_header(token: str) -> None:
    """Raise `Unauthorized` for a token that tries to control its own verification."""
    try:
        header = jwt.get_unverified_header(token)
    except _MALFORMED:
        raise refusals.not_a_jwt() from None
    if found := sorted(_FORBIDDEN_HEADERS & header.keys()):
        raise refusals.key_in_header(names=", ".join(found))
