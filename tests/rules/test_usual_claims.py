"""Usual claims are read in one step, with the same result as one by one (ruling A2)."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from emulator.auth.claims import caller_of, check_exp, milliseconds, usual_caller
from emulator.callers import Grant
from support.examples import examples

GRANT = Grant("a secret")
PLATFORM = {
    "exp": 2_000_000_000,
    "iat": 1_900_000_000,
    "role": "viewer",
    "channel_id": "777",
    "user_id": "5551",
    "opaque_user_id": "U5551",
    "is_unlinked": False,
    "pubsub_perms": {"listen": ["broadcast", "global"], "send": []},
}

ids = st.sampled_from(["", "1", "U1", "A-1", "é", "\ud800", 7, None, 1.5, True, []]) | st.text(max_size=5)
odd = st.sampled_from([None, True, -1, 0, 10**11 - 1, 10**11, 10**30, 2.5, "2000000000", []])
odd_claims = st.fixed_dictionaries(
    {},
    optional={
        "exp": st.integers(1, 4 * 10**9) | odd,
        "iat": st.integers(1, 4 * 10**9) | odd,
        "nbf": st.integers(1, 4 * 10**9),
        "role": st.sampled_from(["viewer", "broadcaster", "admin", "backend", "external", "", None, 5]),
        "channel_id": ids,
        "user_id": ids,
        "opaque_user_id": ids,
        "is_unlinked": st.booleans(),
        "jti": ids,
        "use": st.sampled_from(["pin", "refresh"]),
        "allowed_stage": st.just("sandbox"),
        "extension_id": ids,
        "app_id": ids,
        "pubsub_perms": st.just(PLATFORM["pubsub_perms"]) | odd,
    },
)
usual_claims = st.fixed_dictionaries(
    {"exp": st.integers(1, 10**11 - 1)},
    optional={
        "role": st.sampled_from(["viewer", "broadcaster", "admin", "backend", "external", ""]),
        **dict.fromkeys(("channel_id", "user_id", "opaque_user_id"), st.sampled_from(["", "1", "U1", "A-1"])),
    },
)
one_odd_claim = odd_claims.flatmap(lambda claims: st.sampled_from([{}, *({name: claims[name]} for name in claims)]))
claim_sets = odd_claims | st.builds(lambda usual, odd: usual | odd, usual_claims, one_odd_claim)


@pytest.mark.parametrize("left_out", [(), ("user_id",), ("opaque_user_id",), ("channel_id", "iat"), ("pubsub_perms",)])
def test_a_token_of_the_platform_is_usual(left_out: tuple[str, ...]):
    claims = {name: value for name, value in PLATFORM.items() if name not in left_out}

    found = usual_caller("my-extension", json.dumps(claims).encode(), GRANT)

    assert found is not None
    assert caller_of("my-extension", claims, GRANT) == found


@pytest.mark.parametrize("name", ["nbf", "use", "allowed_stage", "extension_id", "app_id", "admitted_by", "link"])
def test_a_claim_that_has_an_effect_is_not_usual(name: str):
    assert usual_caller("my-extension", json.dumps(PLATFORM | {name: "1"}).encode(), GRANT) is None


@pytest.mark.parametrize("name", ["user_id", "opaque_user_id", "channel_id"])
def test_an_id_with_a_nul_is_not_usual(name: str):
    assert usual_caller("my-extension", json.dumps(PLATFORM | {name: "7\0"}).encode(), GRANT) is None


@settings(max_examples=examples(1_000), deadline=None)
@given(claim_sets, st.booleans())
def test_usual_claims_give_the_caller_that_all_claims_give(claims: dict[str, Any], escaped: bool):
    payload = json.dumps(claims, ensure_ascii=escaped).encode(errors="surrogatepass")

    found = usual_caller("my-extension", payload, GRANT)

    if found is not None:
        read = json.loads(payload)
        assert not {"nbf", "use", "allowed_stage", "extension_id", "app_id"} & read.keys()
        assert check_exp(read) == milliseconds(read, "exp") == found.expires_at
        assert caller_of("my-extension", read, GRANT) == found
