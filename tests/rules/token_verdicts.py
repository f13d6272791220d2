"""The verdicts of both ways to verify a token: `hs256`, which is fast, and pyjwt, which decides."""

from __future__ import annotations

from emulator.auth import hs256, jwts, refusals
from emulator.core.errors import Unauthorized
from support.service import SECRET

KEYS = {"new": b"the secret of a newer deployment, 32+", "": SECRET}
PREPARED = {name: hs256.PreparedKey(key) for name, key in KEYS.items()}


def pyjwt_verdict(token: str) -> str:
    """Return the claims and the name of the key, or the error, as pyjwt alone gives them."""
    try:
        return repr(jwts.verify(token, KEYS))
    except Unauthorized as error:
        return error.detail


def fast_verdict(token: str) -> str | None:
    """Return the claims and the name of the key, or the error; `None` if `hs256` leaves the token to pyjwt.

    As text, which unlike `==` distinguishes 1, 1.0 and true, and shows the order of the claims.
    """
    found = hs256.verify(token, PREPARED)
    if found is not None and found[1] is None:
        return refusals.bad_signature().detail
    return None if found is None else repr(found)


def pyjwt_reading(token: str) -> str:
    """Return the claims, which no key verifies, or the error, as pyjwt alone gives them."""
    try:
        return repr(jwts.decode_unverified(token))
    except Unauthorized as error:
        return error.detail


def fast_reading(token: str) -> str | None:
    """Return the claims, which no key verifies; `None` if `hs256` leaves the token to pyjwt."""
    claims, signer = hs256.verify(token, {"": hs256.PreparedKey(b"a key that signed no token")}) or ({}, None)
    assert signer is None
    return repr(claims) if claims else None
