"""Verified tokens are cached: at most 40,000, in at most 400 bytes each, and unseen by the garbage collector."""

from __future__ import annotations

import gc

import pytest

from emulator.auth import tokens as module
from emulator.auth.tokens import Tokens
from emulator.clock import Clock
from emulator.errors import Unauthorized
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


@pytest.mark.parametrize("times", [0, 1, 2])
def test_a_cached_token_is_found_expired_and_forgotten_however_often_it_came(times: int):
    clock = Clock(lambda: NOW * 1000)
    tokens = production_tokens(clock=clock)
    caller = tokens.verify(header(1)).caller

    assert [caller] * times == [tokens.cached_caller(header(1)) for _ in range(times)]
    clock.advance(600_000)
    with pytest.raises(Unauthorized, match="expired"):
        tokens.cached_caller(header(1))
    clock.advance(-600_000)
    tokens.forget()
    assert tokens.cached_caller(header(1)) is None


def test_a_header_that_differs_in_one_character_is_not_cached(tokens: Tokens):
    cached = header(1)
    tokens.verify(cached)

    for at in range(len(cached)):
        other = "x" if cached[at] != "x" else "y"
        assert tokens.cached_caller(cached[:at] + other + cached[at + 1 :]) is None


def test_a_token_is_cached_under_its_own_header_if_another_one_missed_in_between(tokens: Tokens):
    one, other = header(1), header(2)
    assert tokens.cached_caller(one) is None
    assert tokens.cached_caller(other) is None

    caller = tokens.verify(one).caller

    assert [caller, None] == [tokens.cached_caller(one), tokens.cached_caller(other)]


def test_the_garbage_collector_does_not_visit_cached_callers(tokens: Tokens):
    credential = tokens.verify(header(1))

    assert not gc.is_tracked(credential.caller)


def test_callers_of_one_channel_share_its_id_and_their_grant(tokens: Tokens):
    one, other = (tokens.verify(header(number)).caller for number in (1, 2))

    assert one.client_id is other.client_id
    assert one.channel_id is other.channel_id
    assert one.grant is other.grant
