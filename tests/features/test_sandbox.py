"""Authentication in sandbox: header, claims, lifetimes (Authentication 1-4, 6; rulings A1 to A4)."""

from __future__ import annotations

import base64

import jwt
import pytest

from emulator.core.extensions import Extension
from emulator.core.settings import Settings
from support.service import CLIENT_ID, SECRET, LiveServer, live_server


def segment(text: bytes) -> str:
    return base64.urlsafe_b64encode(text).rstrip(b"=").decode()


def token_of(payload: bytes, *, header: bytes = b'{"alg":"HS256","typ":"JWT"}', signature: bytes = b"any") -> str:
    """Return a token with these bytes in its segments."""
    return f"{segment(header)}.{segment(payload)}.{segment(signature)}"


ANY = jwt.encode({"role": "viewer"}, b"an unknown key of 32 or more bytes")
UNSIGNED = token_of(b'{"role":"viewer"}', signature=b"")


@pytest.mark.parametrize(
    "token",
    [
        jwt.encode({"role": "viewer"}, b"k" * 64, algorithm="HS512"),
        jwt.encode({"role": "viewer"}, None, algorithm="none"),
        *(ANY, UNSIGNED, UNSIGNED.removesuffix("."), f"{UNSIGNED}x", f"{UNSIGNED}$.more.dots"),
        token_of(b'{"role":"viewer"}', header=b"{}"),
    ],
)
def test_sandbox_does_not_check_signatures(live: LiveServer, token: str):
    answer = live.bearer(token).get("user_info")

    assert (200, "viewer") == (answer.status_code, answer.json().get("role"))


def test_with_registered_only_unregistered_client_ids_are_refused():
    extensions = {CLIENT_ID: Extension(CLIENT_ID, (SECRET,))}
    with live_server(Settings(extensions=extensions, registered_only=True)) as live:
        known = live.client("viewer", key=b"an unknown key of 32 or more bytes").get("user_info")
        unknown = live.client("viewer", client_id="unregistered").get("user_info")

    assert (200, 401) == (known.status_code, unknown.status_code)
    assert "not a registered extension" in unknown.json()["info"]
