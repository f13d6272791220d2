"""What is not a JWT signed with HS256 and a secret of the extension is 401, whatever it says of itself (A1)."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from collections.abc import Callable
from typing import Any

import pytest

from support.service import CLIENT_ID, SECRET, LiveServer, real_seconds

HASHES = {"HS256": hashlib.sha256, "HS384": hashlib.sha384, "HS512": hashlib.sha512}


def segment(value: Any) -> str:
    data = value if isinstance(value, bytes) else json.dumps(value).encode()
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def claims() -> dict[str, Any]:
    return {"role": "admin", "user_id": "1", "channel_id": "777", "exp": real_seconds() + 600}


def signed(header: Any, payload: Any = None, *, hashed: str = "HS256", key: bytes = SECRET) -> str:
    """A token of this header that is really signed; only that can show that the header is what is refused."""
    text = f"{segment(header)}.{segment(claims() if payload is None else payload)}"
    return f"{text}.{segment(hmac.new(key, text.encode(), HASHES[hashed]).digest())}"


def with_header(**more: Any) -> str:
    return signed({"alg": "HS256", "typ": "JWT", **more})


def good() -> str:
    return with_header()


def parts() -> list[str]:
    return good().split(".")


def detached() -> str:
    header, _, signature = parts()
    return f"{header}..{signature}"


def unencoded() -> str:
    """RFC 7797: the signature is over the payload as it is."""
    header = segment({"alg": "HS256", "b64": False, "crit": ["b64"]})
    payload = json.dumps(claims()).replace(" ", "")
    return f"{header}.{segment(payload.encode())}." + segment(
        hmac.new(SECRET, f"{header}.{payload}".encode(), hashlib.sha256).digest()
    )


FORGERIES: dict[str, Callable[[], str]] = {
    "alg none, signed": lambda: signed({"alg": "none"}),
    "alg none, unsigned": lambda: f"{segment({'alg': 'none'})}.{segment(claims())}.",
    "alg None, unsigned": lambda: f"{segment({'alg': 'None'})}.{segment(claims())}.",
    "alg NONE, the signature left out": lambda: f"{segment({'alg': 'NONE'})}.{segment(claims())}",
    "alg null": lambda: signed({"alg": None}),
    "alg a list": lambda: signed({"alg": ["HS256"]}),
    "alg an object": lambda: signed({"alg": {"HS256": 1}}),
    "alg a number": lambda: signed({"alg": 256}),
    "alg in small letters": lambda: signed({"alg": "hs256"}),
    "alg with a blank": lambda: signed({"alg": "HS256 "}),
    "no alg": lambda: signed({"typ": "JWT"}),
    "RS256 with the secret for a public key": lambda: signed({"alg": "RS256"}),
    "ES256 with the secret": lambda: signed({"alg": "ES256"}),
    "PS256 with the secret": lambda: signed({"alg": "PS256"}),
    "EdDSA with the secret": lambda: signed({"alg": "EdDSA"}),
    "HS384": lambda: signed({"alg": "HS384"}, hashed="HS384"),
    "HS512": lambda: signed({"alg": "HS512"}, hashed="HS512"),
    "HS384 that says HS256": lambda: signed({"alg": "HS256"}, hashed="HS384"),
    "HS512 that says HS256": lambda: signed({"alg": "HS256"}, hashed="HS512"),
    "HS256 cut to 128 bits": lambda: ".".join([*parts()[:2], parts()[2][:22]]),
    "kid of another file": lambda: with_header(kid="../../dev/null").rpartition(".")[0] + ".",
    "kid that is no text": lambda: with_header(kid=1),
    "jku": lambda: with_header(jku="http://127.0.0.1/keys"),
    "jwk": lambda: with_header(jwk={"kty": "oct", "k": segment(SECRET)}),
    "x5u": lambda: with_header(x5u="http://127.0.0.1/certificate"),
    "x5c": lambda: with_header(x5c=["MIIB"]),
    "crit of something unknown": lambda: with_header(crit=["exp"], exp=0),
    "crit of nothing": lambda: with_header(crit=[]),
    "crit that is text": lambda: with_header(crit="b64"),
    "a payload that is not encoded": unencoded,
    "b64 alone": lambda: with_header(b64=False),
    "an empty signature": lambda: ".".join([*parts()[:2], ""]),
    "a signature of blanks": lambda: ".".join([*parts()[:2], "AAAA"]),
    "a signature of 32 zeros": lambda: ".".join([*parts()[:2], segment(bytes(32))]),
    "signed with nothing": lambda: signed({"alg": "HS256"}, key=b""),
    "signed with the secret's base64": lambda: signed({"alg": "HS256"}, key=base64.b64encode(SECRET)),
    "signed with the client id": lambda: signed({"alg": "HS256"}, key=CLIENT_ID.encode()),
    "no dot": lambda: "".join(parts()),
    "one dot": lambda: ".".join(parts()[:2]),
    "three dots": lambda: f"{good()}.{parts()[2]}",
    "five parts, as of a JWE": lambda: ".".join([*parts(), *parts()[:2]]),
    "dots alone": lambda: "..",
    "detached": detached,
    "nested": lambda: signed({"alg": "HS256", "cty": "JWT"}, good().encode()),
    "a JWS in JSON": lambda: json.dumps(
        {"payload": parts()[1], "protected": parts()[0], "signature": parts()[2]}, separators=(",", ":")
    ),
    "claims that are a list": lambda: signed({"alg": "HS256"}, [claims()]),
    "claims that are text": lambda: signed({"alg": "HS256"}, "admin"),
    "claims that are null": lambda: signed({"alg": "HS256"}, b"null"),
    "claims that are nothing": lambda: signed({"alg": "HS256"}, b""),
    "a header that is a list": lambda: signed(["HS256"]),
    "a header that is null": lambda: signed(b"null"),
    "a header that is no JSON": lambda: signed(b"{"),
    "a header nested without end": lambda: signed(b'{"alg":' + b"[" * 2_000),
}


def test_the_token_that_the_forgeries_are_made_of_is_good(production: LiveServer):
    assert 200 == production.bearer(good()).get("user_info").status_code


@pytest.mark.parametrize("forgery", FORGERIES)
@pytest.mark.ruling("A1")
def test_a_forged_token_is_refused_also_the_second_time(production: LiveServer, forgery: str):
    client = production.bearer(FORGERIES[forgery]())

    assert [401, 401] == [client.get("user_info").status_code for _ in range(2)]


@pytest.mark.parametrize("demand", ["jwk", "jku", "x5u"])
def test_what_is_refused_in_a_header_is_named(production: LiveServer, demand: str):
    answer = production.bearer(with_header(**{demand: "x"})).get("user_info")

    assert f"{demand} is not allowed in the header" in answer.json()["info"]


def test_what_the_header_says_beside_is_let_be(production: LiveServer):
    said = {"typ": "at+jwt", "kid": "2026-11", "note": "of ours"}

    assert 200 == production.bearer(with_header(**said)).get("user_info").status_code
