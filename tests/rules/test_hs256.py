"""The fast way to verify tokens never contradicts pyjwt, and leaves every unusual token to it (ruling A1)."""

from __future__ import annotations

import hashlib
import hmac
import json
from typing import Any

import jwt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from emulator.auth import hs256, jwts
from emulator.core.errors import ServiceError
from rules.token_verdicts import KEYS, fast_reading, fast_verdict, pyjwt_reading, pyjwt_verdict
from support.examples import examples
from support.service import CLIENT_ID, SECRET
from support.signing import NOW, production_tokens, segment, signed

HEADER = {"alg": "HS256", "typ": "JWT"}
CLAIMS = {"role": "viewer", "user_id": "1", "channel_id": "777", "exp": NOW + 600}
JWK = b'{"kty":"oct","k":"c2VjcmV0IHNlY3JldCBzZWNyZXQgc2VjcmV0"}'
PEM = b"-----BEGIN PUBLIC KEY-----\nMFkwEwYHKoZIzj0CAQ==\n-----END PUBLIC KEY-----"
TOKENS = production_tokens(tuple(KEYS.values()))

NAMES = st.sampled_from([*CLAIMS, "opaque_user_id", "nbf", "jti", "use", "é", "a"]) | st.text(max_size=4)
TEXTS = st.text(st.characters(exclude_categories=()), max_size=8)
SCALARS = st.one_of(st.none(), st.booleans(), st.integers(), st.sampled_from([2**63, 2**64, -(2**63) - 1]), TEXTS)
VALUES = st.recursive(
    SCALARS | st.floats(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=5,
)
RAW_VALUES = ["1.0", "-0", "-0.0", "1e5", "1E+2", "1e400", "5e-324", "01", "1.", "NaN", "-Infinity", "9" * 4_301, "tru"]
RAW_VALUES += ['"\\ud800"', '"\\ud83d\\ude00"', '"\\/"', '"\\x"', '"\t"', '"\x7f"', '"', "", "[", "{}", "[[1]]"]
ENCODINGS = ["utf-8", "utf-8", "utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-32", "latin-1"]
HEADER_FIELDS = st.tuples(
    st.sampled_from(["alg", "typ", "kid", "cty", "crit", "b64", "jku"]),
    st.sampled_from(["HS256", "HS384", "none", "JWT", "", "é", None, True, False, 1, 1.5, [], ["b64"], {}]),
)
ODD_CHARACTERS = "AQgw_-+/=. \n\t~\x00\x7fé€"


@st.composite
def payloads(draw: st.DrawFn) -> bytes:
    """Return claims as bytes: with doubled names, odd numbers and spaces, in several encodings."""
    ascii_only = draw(st.booleans())
    values = VALUES.map(lambda value: json.dumps(value, ensure_ascii=ascii_only)) | st.sampled_from(RAW_VALUES)
    members = draw(st.lists(st.tuples(NAMES.map(json.dumps), values), max_size=5))
    space = draw(st.sampled_from(["", " ", "\n\r\t", "\x0b"]))
    text = "{" + f",{space}".join(f"{name}:{space}{value}" for name, value in members) + "}"
    encoded = text.encode(draw(st.sampled_from(ENCODINGS)), "surrogatepass" if ascii_only else "backslashreplace")
    return draw(st.sampled_from([b"", b"", b"", b" ", b"\xef\xbb\xbf", b"\xff"])) + encoded


@st.composite
def headers(draw: st.DrawFn) -> bytes:
    """Return the header that most tokens have, or one with fields added, doubled and left out."""
    if draw(st.booleans()):
        return json.dumps(HEADER, separators=(",", ":")).encode()
    fields = [("alg", "HS256"), *draw(st.lists(HEADER_FIELDS, max_size=3))][draw(st.integers(0, 1)) :]
    return ("{" + ", ".join(f"{json.dumps(name)}: {json.dumps(value)}" for name, value in fields) + "}").encode()


@st.composite
def changed(draw: st.DrawFn, text: str) -> str:
    """Return a text, most often as it is, or damaged or spelled differently."""
    at = draw(st.integers(0, len(text)))
    other = draw(st.sampled_from(ODD_CHARACTERS))
    first, dot, rest = text.partition(".")
    standard = text.replace("-", "+").replace("_", "/")
    flipped = text[: at - 1] + chr(ord(text[at - 1]) ^ 1) + text[at:]
    texts = [text[:at], text[:at] + other + text[at:], text[:at] + other + text[at + 1 :], flipped]
    texts += [text + "=", text + "==", f"{first}={dot}{rest}", rest + dot + first, standard, text[:-1] + other]
    return draw(st.one_of(st.just(text), st.just(text), st.sampled_from(texts)))


@st.composite
def tokens(draw: st.DrawFn) -> str:
    """Return a token that was changed before it was signed, or after, or both, or not at all."""
    text = draw(changed(f"{segment(draw(headers()))}.{segment(draw(payloads()))}"))
    key = draw(st.sampled_from([*KEYS.values(), SECRET + b"\0", b"another"]))
    hashed = draw(st.sampled_from([hashlib.sha256, hashlib.sha256, hashlib.sha256, hashlib.sha512]))
    return draw(changed(f"{text}.{segment(hmac.new(key, text.encode(), hashed).digest())}"))


@pytest.mark.slow
@settings(deadline=None, max_examples=examples(120))
@given(tokens())
def test_the_fast_way_agrees_with_pyjwt_or_abstains(token: str):
    assert fast_verdict(token) in (None, pyjwt_verdict(token))
    assert fast_reading(token) in (None, pyjwt_reading(token))


@pytest.mark.slow
@settings(deadline=None, max_examples=examples(60))
@given(tokens())
def test_a_token_that_pyjwt_refuses_gets_the_error_of_pyjwt(token: str):
    verdict = pyjwt_verdict(token)
    if verdict.startswith("({") or len(token) > 8_000 or len(token.split()) != 1:
        return  # accepted, or refused before its signature is checked

    with pytest.raises(ServiceError) as refused:
        TOKENS.verify(f"{CLIENT_ID} {token}")

    assert verdict == refused.value.detail


@pytest.mark.parametrize(
    ("header", "claims"),
    [
        ({"alg": "HS256"}, CLAIMS),
        ({"typ": "JWT", "alg": "HS256"}, CLAIMS),
        (HEADER | {"kid": "2026-11"}, CLAIMS),
        (HEADER, CLAIMS | {"pubsub_perms": {"listen": ["broadcast", "global"], "send": ["*"]}, "is_unlinked": False}),
        (HEADER, CLAIMS | {"aud": ["a", "b"], "user_id": 1, "opaque_user_id": None}),
        (HEADER, {}),
    ],
)
def test_a_usual_token_is_verified_the_fast_way(header: dict[str, Any], claims: dict[str, Any]):
    token = signed(header, claims)

    assert repr((claims, "")) == fast_verdict(token) == pyjwt_verdict(token)


def test_a_token_that_the_service_issues_is_verified_the_fast_way():
    token = jwts.sign(CLAIMS | {"jti": "é>?~"}, SECRET)

    assert pyjwt_verdict(token) == fast_verdict(token)


@pytest.mark.parametrize("key", [JWK, PEM, b"ssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAABAQ"])
@pytest.mark.parametrize("signer", [0, 1])
def test_an_extension_with_a_secret_that_pyjwt_refuses_is_left_to_pyjwt(key: bytes, signer: int):
    secrets = (key, SECRET)

    with pytest.raises(jwt.InvalidKeyError):
        production_tokens(secrets).verify(f"{CLIENT_ID} {signed(HEADER, CLAIMS, key=secrets[signer])}")


@pytest.mark.parametrize("size", [0, 1, 32, 63, 64, 65, 200])
@pytest.mark.parametrize("message", [b"", b"a" * 300])
def test_a_prepared_key_signs_as_hmac_does_each_time(size: int, message: bytes):
    secret = bytes(range(200, 256)) * 4
    key = hs256.PreparedKey(secret[:size])

    assert [hmac.digest(secret[:size], message, "sha256")] * 2 == [key.signature(message) for _ in range(2)]
