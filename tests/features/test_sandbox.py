"""Authentication in sandbox: header, claims, lifetimes (Authentication 1-4, 6; rulings A1 to A4)."""

from __future__ import annotations

import base64

import jwt
import pytest

from emulator.core.config.extensions import Extension
from emulator.core.config.settings import Settings
from support.service import CHANNEL, CLIENT_ID, SECRET, Client, LiveServer, live_server

UNAUTHORIZED = "User was unauthorized to access this resource"
TOKEN = jwt.encode({"role": "viewer", "channel_id": CHANNEL, "user_id": "5551"}, SECRET)


def segment(text: bytes) -> str:
    return base64.urlsafe_b64encode(text).rstrip(b"=").decode()


def token_of(payload: bytes, *, header: bytes = b'{"alg":"HS256","typ":"JWT"}', signature: bytes = b"any") -> str:
    """Return a token with these bytes in its segments."""
    return f"{segment(header)}.{segment(payload)}.{segment(signature)}"


@pytest.mark.parametrize("client_id", ["my-extension", "x", "ext.with:odd/characters=", "ÿ", "U1"])
def test_sandbox_accepts_any_client_id(live: LiveServer, client_id: str):
    header = f"{client_id} {TOKEN}".encode("latin-1")

    answer = Client(base_url=f"{live.url}/v1/e/", headers={b"Authorization": header}).get("user_info")

    assert (200, client_id) == (answer.status_code, answer.json()["extension_id"])


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


@pytest.mark.parametrize(
    "header", ["", CLIENT_ID, TOKEN, f"{CLIENT_ID} {TOKEN} more", f"{CLIENT_ID},{TOKEN}", '""', "\xa0"]
)
def test_a_malformed_header_is_refused(live: LiveServer, header: str):
    value = header.encode("latin-1")

    answer = Client(base_url=f"{live.url}/v1/e/", headers={b"Authorization": value}).get("user_info")

    assert 401 == answer.status_code


@pytest.mark.parametrize(
    "token",
    [
        *(
            "a.b.c",
            "...",
            segment(b'{"role":"viewer"}'),
            f"{segment(b'{}')}.",
            "a" * 20_000,
            token_of(b"{}", header=b"[]"),
        ),
        *map(token_of, (b"[]", b'"text"', b"null", b"{", b"\xff\xfe", b"[" * 3000, b'{"exp":' + b"9" * 5000 + b"}")),
    ],
)
def test_a_malformed_token_is_refused(live: LiveServer, token: str):
    answer = live.bearer(token).get("user_info")

    assert (401, UNAUTHORIZED) == (answer.status_code, answer.json()["reason"])


@pytest.mark.parametrize("claim", ["exp", "nbf"])
@pytest.mark.parametrize("value", [b'"soon"', b"true", b"[]", b"NaN", b"1e400", b"1e300"])
def test_a_claim_with_a_time_must_be_a_number_of_seconds(live: LiveServer, claim: str, value: bytes):
    answer = live.bearer(token_of(b'{"role":"viewer","%s":%s}' % (claim.encode(), value))).get("user_info")

    assert (401, UNAUTHORIZED) == (answer.status_code, answer.json()["reason"])


def test_with_registered_only_unregistered_client_ids_are_refused():
    extensions = {CLIENT_ID: Extension(CLIENT_ID, (SECRET,))}
    with live_server(Settings(extensions=extensions, registered_only=True)) as live:
        known = live.client("viewer", key=b"an unknown key of 32 or more bytes").get("user_info")
        unknown = live.client("viewer", client_id="unregistered").get("user_info")

    assert (200, 401) == (known.status_code, unknown.status_code)
    assert "not a registered extension" in unknown.json()["info"]
