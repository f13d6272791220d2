"""Secrets stay out of the journal under every spelling of their names, and as credentials inside texts."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from emulator.contract.names import SECRET_ENDS, SECRET_NAMES, is_secret
from emulator.core.observability.masking import masked_body, masked_text
from support.examples import examples

VALUE = "s3cr3t-Value"
NAMES = [
    *("pin", "authorization", "access_token", "clientSecret", "password", "passWord", "PaSsWoRd", "new-passwords"),
    *("api_key", "apiKey", "API-KEY", "x-api-key", "passwd", "pwd", "userPwd", "credential", "credentials", "auth"),
    *("private_key", "privateKey", "passphrase", "keyPassPhrase", "TOKEN", "sEcReT"),
]
TEXTS = [
    "Basic dXNlcjpzM2NyM3QtVmFsdWU=",
    "basic dXNlcjpzM2NyM3QtVmFsdWU=",
    "see https://user:s3cr3t-Value@host.example/x",
    "REDIS://:s3cr3t-Value@host",
]


@pytest.mark.parametrize("long", [False, True])
def test_a_member_is_hidden_under_every_spelling_of_its_name(long: bool):
    for name in (spell(name) for name in NAMES for spell in (str, str.upper, str.lower, str.title)):
        body = {"a": "x" * 80 * long, name: VALUE, "data": {name: [VALUE]}, "text": json.dumps({name: VALUE})}

        assert VALUE.encode() not in masked_body(json.dumps(body).encode()), name


NAME_PARTS = st.sampled_from([*SECRET_NAMES, *SECRET_ENDS, "s", "_", "-", "S", "to", "ken", "pass", "i", "n", "x"])
NAMES_LIKE_SECRETS = st.lists(NAME_PARTS, min_size=1, max_size=5).map("".join)


@settings(max_examples=examples(200), deadline=None)
@given(NAMES_LIKE_SECRETS, st.sampled_from([str, str.upper, str.title]))
def test_a_member_is_hidden_if_and_only_if_its_name_is_secret(name: str, spell: type[str]):
    name = spell(name)
    for body in ({"a": 1, name: VALUE}, {"a": "x" * 80, "text": json.dumps({name: VALUE})}):
        assert (VALUE.encode() not in masked_body(json.dumps(body).encode())) is is_secret(name)


@pytest.mark.parametrize("text", TEXTS)
def test_a_credential_inside_a_text_is_hidden(text: str):
    for body in (text.encode(), json.dumps({"message": text, "more": "x" * 80}).encode()):
        assert b"s3cr3t" not in masked_body(body)
        assert b"dXNlcjpz" not in masked_body(body)
    assert "s3cr3t" not in masked_text(text)
    assert "dXNlcjpz" not in masked_text(text)


@pytest.mark.parametrize(
    "text", ["basic income", "see https://host:8282/a@b", "tokenize this", "a key", "the pinnacle"]
)
def test_ordinary_texts_stay(text: str):
    body = json.dumps({"message": text}, separators=(",", ":")).encode()

    assert (body, text) == (masked_body(body), masked_text(text))
