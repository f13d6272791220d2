"""Only a JWT signed with HS256 and a secret of the extension is accepted, whatever its header says (ruling A1)."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from collections.abc import Callable
from typing import Any

import pytest

from emulator.auth.tokens import Tokens
from emulator.core.errors import Unauthorized
from rules.token_verdicts import fast_reading, fast_verdict, pyjwt_reading, pyjwt_verdict
from support import signing
from support.service import CLIENT_ID, SECRET
from support.signing import NOW, production_tokens, segment


def claims() -> dict[str, Any]:
    return {"role": "admin", "user_id": "1", "channel_id": "777", "exp": NOW + 600}


def signed(header: Any, payload: Any = None, **options: Any) -> str:
    """A token with this header and a valid signature, so that only the header can be the reason to refuse it."""
    return signing.signed(header, claims() if payload is None else payload, **options)


def with_header(**fields: Any) -> str:
    return signed({"alg": "HS256", "typ": "JWT", **fields})


def valid() -> str:
    return with_header()


def parts() -> list[str]:
    return valid().split(".")


def detached() -> str:
    header, _, signature = parts()
    return f"{header}..{signature}"


def unencoded() -> str:
    """RFC 7797: the signature covers the payload before encoding."""
    header = segment({"alg": "HS256", "b64": False, "crit": ["b64"]})
    payload = json.dumps(claims()).replace(" ", "")
    return f"{header}.{segment(payload.encode())}." + segment(
        hmac.new(SECRET, f"{header}.{payload}".encode(), hashlib.sha256).digest()
    )


FORGERIES: dict[str, Callable[[], str]] = {
    "alg none, signed": lambda: signed({"alg": "none"}),
    "alg none, unsigned": lambda: f"{segment({'alg': 'none'})}.{segment(claims())}.",
    "alg None, unsigned": lambda: f"{segment({'alg': 'None'})}.{segment(claims())}.",
    "alg NONE, no signature segment": lambda: f"{segment({'alg': 'NONE'})}.{segment(claims())}",
    "alg in lower case": lambda: signed({"alg": "hs256"}),
    "no alg": lambda: signed({"typ": "JWT"}),
    "RS256 with the secret as public key": lambda: signed({"alg": "RS256"}),
    "HS384": lambda: signed({"alg": "HS384"}, hashed="HS384"),
    "HS512": lambda: signed({"alg": "HS512"}, hashed="HS512"),
    "HS512 labeled HS256": lambda: signed({"alg": "HS256"}, hashed="HS512"),
    "HS256 truncated to 128 bits": lambda: ".".join([*parts()[:2], parts()[2][:22]]),
    "kid of another file, no signature": lambda: with_header(kid="../../dev/null").rpartition(".")[0] + ".",
    "jku": lambda: with_header(jku="http://127.0.0.1/keys"),
    "jwk": lambda: with_header(jwk={"kty": "oct", "k": segment(SECRET)}),
    "x5c": lambda: with_header(x5c=["MIIB"]),
    "crit with an unknown field": lambda: with_header(crit=["exp"], exp=0),
    "an unencoded payload": unencoded,
    "an empty signature": lambda: ".".join([*parts()[:2], ""]),
    "a signature of 32 zeros": lambda: ".".join([*parts()[:2], segment(bytes(32))]),
    "signed with an empty key": lambda: signed({"alg": "HS256"}, key=b""),
    "signed with the secret's base64": lambda: signed({"alg": "HS256"}, key=base64.b64encode(SECRET)),
    "signed with the client id": lambda: signed({"alg": "HS256"}, key=CLIENT_ID.encode()),
    "five parts, as in a JWE": lambda: ".".join([*parts(), *parts()[:2]]),
    "a detached payload": detached,
    "a nested token": lambda: signed({"alg": "HS256", "cty": "JWT"}, valid().encode()),
    "a JWS in JSON": lambda: json.dumps(
        {"payload": parts()[1], "protected": parts()[0], "signature": parts()[2]}, separators=(",", ":")
    ),
    "claims that are a list": lambda: signed({"alg": "HS256"}, [claims()]),
    "claims that are a string": lambda: signed({"alg": "HS256"}, "admin"),
    "a header that is a list": lambda: signed(["HS256"]),
    "a deeply nested header": lambda: signed(b'{"alg":' + b"[" * 2_000),
}


@pytest.fixture
def tokens() -> Tokens:
    return production_tokens()


def verify(tokens: Tokens, token: str) -> None:
    tokens.verify(f"{CLIENT_ID} {token}")


@pytest.mark.parametrize("forgery", FORGERIES)
def test_a_forged_token_is_refused_every_time_with_the_error_of_pyjwt(tokens: Tokens, forgery: str):
    token = FORGERIES[forgery]()

    for _ in range(2):
        with pytest.raises(Unauthorized) as refused:
            verify(tokens, token)

    assert fast_verdict(token) in (None, pyjwt_verdict(token))
    assert pyjwt_verdict(token) == refused.value.detail
    assert fast_reading(token) in (None, pyjwt_reading(token))


def test_other_header_fields_are_ignored(tokens: Tokens):
    verify(tokens, with_header(typ="at+jwt", kid="2026-11", note="ours"))
