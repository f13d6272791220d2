"""A token that is signed with a text of the secret, or with the secret decoded wrongly, has a hint that says which."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator

import pytest

from emulator.core.extensions import Extension
from emulator.core.settings import Settings
from support.service import CHANNEL, CLIENT_ID, LiveServer, live_server, real_seconds

EXP = real_seconds() + 3_600
SECRET = bytes(range(200, 233))  # its texts have + and - in them, and no padding
PADDED = b"YWJj" * 12 + b"\xfb\xff"
SECRETS = {"without padding": SECRET, "padded": PADDED}
ENCODE = base64.b64encode
KEYS: dict[str, tuple[Callable[[bytes], bytes], str | None]] = {
    "base64": (ENCODE, "the base64 text of the secret;"),
    "without its padding": (lambda key: ENCODE(key).rstrip(b"="), "the base64 text of the secret;"),
    "CRLF": (lambda key: ENCODE(key).rstrip(b"=") + b"\r\n", "the base64 text of the secret and a line break;"),
    "a tab": (lambda key: ENCODE(key) + b"\t", "the base64 text of the secret and white space;"),
    "quotes": (lambda key: b"'" + ENCODE(key) + b"'\n", "the base64 text of the secret in quotes;"),
    "a mark": (lambda key: b"\xef\xbb\xbf" + ENCODE(key), "the base64 text of the secret with a byte order mark"),
    "hex": (lambda key: key.hex().upper().encode() + b"\n", "the hex text of the secret and a line break;"),
    "text": (lambda key: key.decode("latin-1").encode(), "the decoded secret converted to text;"),
    "decoded to text": (lambda key: key.decode("utf-8", "replace").encode(), "the decoded secret converted to text;"),
    "another": (lambda key: b"a secret that no extension has, at all", None),
}


@pytest.fixture(scope="module", params=SECRETS)
def service(request: pytest.FixtureRequest) -> Iterator[tuple[LiveServer, bytes]]:
    secret = SECRETS[request.param]
    with live_server(Settings(extensions={CLIENT_ID: Extension(CLIENT_ID, (b"x" * 32, secret))})) as live:
        yield live, secret


def hint_of(live: LiveServer, key: bytes) -> str | None:
    answer = live.client("viewer", user="1", channel=CHANNEL, exp=EXP, key=key).get("vote")
    hint: str | None = answer.headers.get("x-emulator-hint")
    assert hint is None or "refuse; rule=secret" == answer.headers["x-emulator-production"]
    return hint


@pytest.mark.parametrize("mistake", KEYS)
def test_the_hint_says_what_a_token_was_signed_with(service: tuple[LiveServer, bytes], mistake: str):
    live, secret = service
    make, words = KEYS[mistake]

    hint = hint_of(live, make(secret))
    assert (hint is None) if words is None else (hint or "").startswith(f"the token is signed with {words}")


def test_base64url_is_named_where_it_differs_from_base64(service: tuple[LiveServer, bytes]):
    live, secret = service

    for key in (base64.urlsafe_b64encode(secret), base64.urlsafe_b64encode(secret) + b"\n"):
        assert "the base64url text of the secret" in (hint_of(live, key) or "")


def test_a_secret_that_was_decoded_twice_has_a_hint(service: tuple[LiveServer, bytes]):
    live, secret = service
    if secret == PADDED:
        key = base64.b64decode(b"YWJj" * 12)
        assert "the token is signed with the secret decoded twice; decode it once" == hint_of(live, key)
