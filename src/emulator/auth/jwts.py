"""Verifying and signing JWTs with pyjwt, whose only user this is (rulings A1, A5), and keys used by mistake."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from emulator.auth import refusals

# Without cryptography, pyjwt has the one algorithm that is used here, and a process takes 10 MB less.
_lacks_cryptography = "cryptography" not in sys.modules
if _lacks_cryptography:
    sys.modules["cryptography"] = None  # type: ignore[assignment]
import jwt  # noqa: E402
from jwt.warnings import InsecureKeyLengthWarning as InsecureKeyLengthWarning  # noqa: E402

if _lacks_cryptography:
    del sys.modules["cryptography"]

_FORBIDDEN_HEADERS = {"jku", "jwk", "x5u", "x5c", "x5t", "x5t#S256", "crit", "b64"}
"""Header fields that supply a key or change how the token is verified. `kid` is allowed but ignored: some libraries
always add it."""

# Lifetimes are checked against the service's clock, not pyjwt's.
_NO_CHECKS: Any = {"verify_signature": False}
_TIME_AND_ID_CLAIMS = ("exp", "nbf", "iat", "aud", "iss", "sub", "jti")
_SIGNATURE_ONLY: Any = {f"verify_{claim}": False for claim in _TIME_AND_ID_CLAIMS}
_MALFORMED_ERRORS = (jwt.InvalidTokenError, RecursionError, ValueError)


class _PlainBase64Encoder(json.JSONEncoder):
    """Escapes `>`, `?`, `~` and DEL, so that the base64url payload contains no `-` or `_` (ruling A5)."""

    def encode(self, o: Any) -> str:
        text = super().encode(o)
        for character in ">?~\x7f":
            text = text.replace(character, f"\\u{ord(character):04x}")
        return text


def sign(claims: Mapping[str, Any], key: bytes) -> str:
    return jwt.encode(dict(claims), key, algorithm="HS256", json_encoder=_PlainBase64Encoder)


def verify(token: str, keys: Mapping[str, bytes]) -> tuple[Mapping[str, Any], str]:
    """Return the claims, and the name of the first of `keys` that signed the token. Raises `Unauthorized`."""
    _check_header(token)
    for name, key in keys.items():
        try:
            return _decode(token, key), name
        except jwt.InvalidSignatureError:
            continue
        except _MALFORMED_ERRORS:
            raise refusals.not_a_jwt() from None
    raise refusals.bad_signature()


def decode_unverified(token: str) -> Mapping[str, Any]:
    """Return the claims of a token with any signature, or none. Raises `Unauthorized`."""
    try:
        header_and_claims = ".".join(token.split(".")[:2])
        claims: Mapping[str, Any] = jwt.decode(f"{header_and_claims}.", options=_NO_CHECKS)
    except _MALFORMED_ERRORS:
        raise refusals.no_shape_of_a_jwt(parts=token.count(".") + 1) from None
    return claims


def is_usable_key(key: bytes) -> bool:
    """Whether pyjwt verifies tokens with this key. It refuses text that looks like a public key, certificate or JWK."""
    try:
        return bool(_decode(sign({"is": "accepted"}, key), key))
    except (jwt.PyJWTError, *_MALFORMED_ERRORS):
        return False


def _decode(token: str, key: bytes) -> Mapping[str, Any]:
    claims: Mapping[str, Any] = jwt.decode(token, key, algorithms=["HS256"], options=_SIGNATURE_ONLY)
    return claims


def _check_header(token: str) -> None:
    """Raise `Unauthorized` for a token that tries to control its own verification."""
    try:
        header = jwt.get_unverified_header(token)
    except _MALFORMED_ERRORS:
        raise refusals.not_a_jwt() from None
    if found := sorted(_FORBIDDEN_HEADERS & header.keys()):
        raise refusals.key_in_header(names=", ".join(found))


_TEXT_AROUND_SECRET = {
    (b"", b""): "",
    **{(b"", end): " and a line break" for end in (b"\n", b"\r\n", b"\r", b"\n\n", b" \n")},
    **{(b"", end): " and white space" for end in (b" ", b"  ", b"\t")},
    (b" ", b""): " with a space in front",
    **{(b"\xef\xbb\xbf", end): " with a byte order mark in front" for end in (b"", b"\n", b"\r\n")},
    **{(each, each + end): " in quotes" for each in (b'"', b"'") for end in (b"", b"\n", b"\r\n")},
}
"""What may stand around a text of the secret, in words."""


def describe_wrong_key(token: str, secrets: Iterable[bytes]) -> str:
    """Return in words which wrong key signed a token, and what to do; empty if none of these did."""
    signed, _, signature = token.encode("ascii", "ignore").rpartition(b".")
    for secret in secrets:
        for key, words in _wrong_keys(secret):
            made = base64.urlsafe_b64encode(hmac.digest(key, signed, hashlib.sha256)).rstrip(b"=")
            if hmac.compare_digest(made, signature):
                return words
    return ""


def _wrong_keys(secret: bytes) -> Iterator[tuple[bytes, str]]:
    texts = {base64.urlsafe_b64encode(secret): "base64url", base64.b64encode(secret): "base64"}
    texts |= {text.rstrip(b"="): kind for text, kind in texts.items()}
    for digits in secret.hex(), secret.hex().upper():
        texts[digits.encode()] = "hex"
    for text, kind in texts.items():
        for (before, after), around in _TEXT_AROUND_SECRET.items():
            yield before + text + after, f"the {kind} text of the secret{around}; decode the secret before you sign"
    for decoded in secret.decode("utf-8", "replace"), secret.decode("latin-1"):
        yield decoded.encode(), "the decoded secret converted to text; sign with the decoded bytes"
    letters = re.sub(rb"[^A-Za-z0-9+/]", b"", secret.replace(b"-", b"+").replace(b"_", b"/"))
    if len(letters) % 4 != 1:
        yield base64.b64decode(letters + b"=="), "the secret decoded twice; decode it once"
