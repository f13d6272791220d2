"""Authentication in sandbox: header, claims, lifetimes (Authentication 1-4, 6; rulings A1 to A4)."""

from __future__ import annotations

import base64

import jwt
import pytest

from emulator.config.extensions import Extension
from emulator.config.settings import Settings
from support.service import CHANNEL, CLIENT_ID, SECRET, Client, LiveServer, live_server, real_seconds

UNAUTHORIZED = "User was unauthorized to access this resource"
TOKEN = jwt.encode({"role": "viewer", "channel_id": CHANNEL, "user_id": "5551"}, SECRET)


def segment(text: bytes) -> str:
    return base64.urlsafe_b64encode(text).rstrip(b"=").decode()


def token_of(payload: bytes, *, header: bytes = b'{"alg":"HS256","typ":"JWT"}', signature: bytes = b"any") -> str:
    """Return a token with these bytes in its segments."""
    return f"{segment(header)}.{segment(payload)}.{segment(signature)}"


def with_header(live: LiveServer, value: str) -> Client:
    return Client(base_url=f"{live.url}/v1/e/", headers={"Authorization": value})


@pytest.mark.parametrize("client_id", ["my-extension", "x", "ext.with:odd/characters=", "ÿ", "U1"])
@pytest.mark.ruling("A1")
def test_sandbox_accepts_any_client_id(live: LiveServer, client_id: str):
    header = f"{client_id} {TOKEN}".encode("latin-1")

    answer = Client(base_url=f"{live.url}/v1/e/", headers={b"Authorization": header}).get("user_info")

    assert (200, client_id) == (answer.status_code, answer.json()["extension_id"])


@pytest.mark.parametrize(
    "token",
    [
        jwt.encode({"role": "viewer"}, b"an unknown key of 32 or more bytes"),
        jwt.encode({"role": "viewer"}, b"k" * 64, algorithm="HS512"),
        jwt.encode({"role": "viewer"}, None, algorithm="none"),
        token_of(b'{"role":"viewer"}', signature=b"no signature"),
        token_of(b'{"role":"viewer"}', signature=b"").removesuffix("."),
        token_of(b'{"role":"viewer"}', signature=b""),
        token_of(b'{"role":"viewer"}', signature=b"") + "signature",
        token_of(b'{"role":"viewer"}', signature=b"") + "x",
        token_of(b'{"role":"viewer"}', signature=b"") + "$.more.dots",
        token_of(b'{"role":"viewer"}', header=b"{}"),
    ],
    ids=["unknown key", "other algorithm", "unsigned", "garbage signature", "no third segment", "empty",
         "the word signature", "one letter", "not base64", "no algorithm"],
)  # fmt: skip
@pytest.mark.ruling("A1")
def test_sandbox_does_not_check_signatures(live: LiveServer, token: str):
    answer = live.bearer(token).get("user_info")

    assert (200, "viewer") == (answer.status_code, answer.json().get("role"))


@pytest.mark.parametrize(
    "header",
    [f"{CLIENT_ID} {TOKEN}", f'"{CLIENT_ID} {TOKEN}"', f"{CLIENT_ID}   {TOKEN}"],
    ids=["as specified", "quoted", "more spaces"],
)
def test_the_header_contains_client_id_and_token_separated_by_spaces(live: LiveServer, header: str):
    answer = with_header(live, header).get("user_info")

    assert (200, CLIENT_ID, "5551") == (answer.status_code, *map(answer.json().get, ("extension_id", "user_id")))


@pytest.mark.parametrize(
    "header",
    ["", CLIENT_ID, TOKEN, f"Bearer {TOKEN}", f"{CLIENT_ID} {TOKEN} more", f"{CLIENT_ID},{TOKEN}", '""', "\xa0"],
)
def test_a_malformed_header_is_refused(live: LiveServer, header: str):
    value = header.encode("latin-1")

    answer = Client(base_url=f"{live.url}/v1/e/", headers={b"Authorization": value}).get("user_info")

    assert (401, UNAUTHORIZED) == (answer.status_code, answer.json()["reason"])


@pytest.mark.parametrize(
    "token",
    [
        "abc",
        "a.b",
        "a.b.c",
        "a.b.c.d",
        "...",
        segment(b'{"role":"viewer"}'),
        f"{segment(b'{}')}.",
        token_of(b"[]"),
        token_of(b'"text"'),
        token_of(b"null"),
        token_of(b"{"),
        token_of(b"\xff\xfe"),
        token_of(b"{}", header=b"[]"),
        token_of(b"[" * 3000),
        token_of(b'{"exp":' + b"9" * 5000 + b"}"),
    ],
)
@pytest.mark.ruling("A1")
def test_a_malformed_token_is_refused(live: LiveServer, token: str):
    answer = live.bearer(token).get("user_info")

    assert (401, UNAUTHORIZED) == (answer.status_code, answer.json()["reason"])


@pytest.mark.parametrize("claim", ["exp", "nbf"])
@pytest.mark.parametrize("value", [b'"soon"', b"true", b"[]", b"NaN", b"1e400", b"1e300"])
def test_a_claim_with_a_time_must_be_a_number_of_seconds(live: LiveServer, claim: str, value: bytes):
    answer = live.bearer(token_of(b'{"role":"viewer","%s":%s}' % (claim.encode(), value))).get("user_info")

    assert (401, UNAUTHORIZED) == (answer.status_code, answer.json()["reason"])


def test_a_header_of_20000_characters_is_refused(live: LiveServer):
    answer = live.bearer("a" * 20_000).get("user_info")

    assert (401, UNAUTHORIZED) == (answer.status_code, answer.json()["reason"])


def test_a_token_without_exp_never_expires_in_sandbox(live: LiveServer):
    client = live.client("viewer", user="5551")

    live.advance(40 * 365 * 86_400_000)

    assert 200 == client.get("user_info").status_code


def test_a_clock_reset_makes_an_expired_token_valid_again(live: LiveServer):
    client = live.client("viewer", exp=real_seconds() + 600)
    live.advance(3_600_000)

    expired = client.get("user_info").status_code
    live.reset()

    assert (401, 200) == (expired, client.get("user_info").status_code)


@pytest.mark.ruling("A1")
def test_sandbox_accepts_tokens_of_every_stage_and_extension(live: LiveServer):
    client = live.client("viewer", allowed_stage="production", extension_id="other", app_id="third")

    assert 200 == client.get("user_info").status_code


@pytest.mark.ruling("A1")
def test_with_registered_only_unregistered_client_ids_are_refused():
    extensions = {CLIENT_ID: Extension(CLIENT_ID, (SECRET,))}
    with live_server(Settings(extensions=extensions, registered_only=True)) as live:
        known = live.client("viewer", key=b"an unknown key of 32 or more bytes").get("user_info")
        unknown = live.client("viewer", client_id="unregistered").get("user_info")

    assert (200, 401) == (known.status_code, unknown.status_code)
    assert "not a registered extension" in unknown.json()["info"]
