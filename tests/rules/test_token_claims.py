"""The claims that production refuses in a token with a valid signature (rulings A1, A2, A5)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from emulator.auth.tokens import Tokens
from emulator.core.errors import Unauthorized
from support.service import CLIENT_ID, OTHER_ID
from support.signing import NOW, production_tokens, signed

HEADER = {"alg": "HS256"}
CLAIMS = {"role": "viewer", "user_id": "1", "channel_id": "777", "exp": NOW + 600}
LONG = int("9" * 4_300)


@pytest.fixture
def tokens() -> Tokens:
    return production_tokens()


def verify(tokens: Tokens, claims: dict[str, Any]) -> None:
    tokens.verify(f"{CLIENT_ID} {signed(HEADER, claims)}")


def test_a_token_with_the_usual_claims_is_valid(tokens: Tokens):
    verify(tokens, CLAIMS)


@pytest.mark.parametrize(
    "exp",
    [None, True, "2000000600", [], {}, (NOW + 600) * 1000, 1e11, 10**11, 1e400, -1e400, LONG],
    ids=["null", "true", "text", "list", "object", "ms", "1e11", "10**11", "inf", "-inf", "4300 digits"],
)
def test_an_exp_that_is_not_a_number_of_seconds_is_refused(tokens: Tokens, exp: object):
    for role in ("viewer", "broadcaster", "admin", "backend"):
        with pytest.raises(Unauthorized, match="the claim exp "):
            verify(tokens, CLAIMS | {"role": role, "exp": exp})


def test_the_last_second_below_1e11_is_accepted(tokens: Tokens):
    verify(tokens, CLAIMS | {"exp": 10**11 - 1})


@pytest.mark.parametrize("name", ["exp", "nbf", "user_id", "channel_id", "extension_id", "unknown"])
def test_an_integer_of_over_4300_digits_is_refused(tokens: Tokens, name: str):
    payload = json.dumps(CLAIMS | {name: 0}).replace(f'"{name}": 0', f'"{name}": {"9" * 4_301}')

    with pytest.raises(Unauthorized):
        tokens.verify(f"{CLIENT_ID} {signed(HEADER, payload.encode())}")


def test_an_id_may_be_a_number_but_not_true(tokens: Tokens):
    credential = tokens.verify(f"{CLIENT_ID} {signed(HEADER, CLAIMS | {'channel_id': 777})}")

    assert "777" == credential.caller.channel_id
    with pytest.raises(Unauthorized, match="the claim channel_id"):
        verify(tokens, CLAIMS | {"channel_id": True})


@pytest.mark.parametrize("text", ["7\0", "é\0"])
@pytest.mark.parametrize("name", ["user_id", "opaque_user_id", "channel_id"])
def test_an_id_with_a_nul_is_refused(tokens: Tokens, name: str, text: str):
    with pytest.raises(Unauthorized, match=f"the claim {name} has a NUL"):
        verify(tokens, CLAIMS | {name: text})


@pytest.mark.parametrize("name", ["user_id", "opaque_user_id", "channel_id"])
def test_an_id_with_a_lone_surrogate_is_refused(tokens: Tokens, name: str):
    with pytest.raises(Unauthorized, match=f"the claim {name} has a lone surrogate"):
        verify(tokens, CLAIMS | {name: "é\ud800"})


@pytest.mark.parametrize(
    ("value", "user_id"), [("", None), (None, None), (7, "7"), ("7", "7"), ("é", "é"), ("😀", "😀"), (0, "0")]
)
def test_an_id_may_be_any_text_or_integer(tokens: Tokens, value: object, user_id: str | None):
    assert user_id == tokens.verify(f"{CLIENT_ID} {signed(HEADER, CLAIMS | {'user_id': value})}").caller.user_id


def issued(tokens: Tokens, **claims: Any) -> str:
    """A token signed with the service's own key: an access token of a link, changed by these claims."""
    fingerprint = tokens.verify(f"{CLIENT_ID} {signed(HEADER, CLAIMS)}").caller.grant.secret
    given = {"role": "broadcaster", "channel_id": "777", "extension_id": CLIENT_ID, "link": "l", "linked_at": 1}
    return tokens.issue(600_000, **{**given, "admitted_by": fingerprint, **claims})


def test_an_access_token_of_the_service_is_accepted(tokens: Tokens):
    assert "777" == tokens.verify(f"{CLIENT_ID} {issued(tokens)}").caller.channel_id


@pytest.mark.parametrize(
    "changed",
    [
        {"role": "admin"},
        {"role": "backend"},
        {"role": "viewer"},
        {"role": None},
        {"channel_id": None},
        {"channel_id": None, "user_id": "777"},
        {"extension_id": None},
        {"extension_id": OTHER_ID},
        {"link": None},
        {"link": ""},
        {"link": 1},
        {"linked_at": "1"},
        {"admitted_by": None},
        {"admitted_by": "0123456789abcdef"},
        {"role": "admin", "use": "access"},
        {"use": "refresh"},
        {"use": ""},
    ],
    ids=str,
)
def test_the_services_key_signs_only_the_tokens_that_it_issues(tokens: Tokens, changed: dict[str, Any]):
    with pytest.raises(Unauthorized):
        tokens.verify(f"{CLIENT_ID} {issued(tokens, **changed)}")


def test_a_self_signed_token_with_a_link_is_not_an_issued_one(tokens: Tokens):
    caller = tokens.verify(f"{CLIENT_ID} {signed(HEADER, CLAIMS | {'link': 'l', 'admitted_by': 'x'})}").caller

    assert ("", True) == (caller.grant.link, bool(caller.grant.secret))
