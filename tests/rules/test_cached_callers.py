"""Verified tokens are cached: at most 40,000, in at most 400 bytes each, and unseen by the garbage collector."""

from __future__ import annotations

import gc

import pytest

from emulator.auth import tokens as module
from emulator.auth.tokens import Tokens
from support.service import CLIENT_ID
from support.signing import NOW, production_tokens, signed


@pytest.fixture
def tokens() -> Tokens:
    return production_tokens()


def header(number: int) -> str:
    claims = {"role": "viewer", "user_id": str(number), "channel_id": "777", "exp": NOW + 600}
    return f"{CLIENT_ID} {signed({'alg': 'HS256'}, claims)}"


def test_a_verified_caller_is_cached(tokens: Tokens):
    assert tokens.cached_caller(header(1)) is None

    credential = tokens.verify(header(1))

    assert credential.caller is tokens.cached_caller(header(1))


def test_a_full_cache_forgets_the_oldest_token(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(module, "_MAX_CACHED", 2)
    tokens = production_tokens()

    for number in (1, 2, 3):
        tokens.verify(header(number))

    assert [False, True, True] == [tokens.cached_caller(header(number)) is not None for number in (1, 2, 3)]


def test_the_garbage_collector_does_not_visit_cached_callers(tokens: Tokens):
    credential = tokens.verify(header(1))

    assert not gc.is_tracked(credential.caller)


def test_callers_of_one_channel_share_its_id_and_their_grant(tokens: Tokens):
    one, other = (tokens.verify(header(number)).caller for number in (1, 2))

    assert one.client_id is other.client_id
    assert one.channel_id is other.channel_id
    assert one.grant is other.grant
