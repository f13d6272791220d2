"""A fast way may only agree with the slow one or abstain: queries and tokens (ruling A2).

Others: `test_hs256.py`, `test_streaming_json.py`, `tests/engines/contract_entries.py` and `tests/web/test_hot_path.py`.
"""

from __future__ import annotations

from typing import Any
from urllib.parse import unquote_plus

from hypothesis import example, given, settings
from hypothesis import strategies as st

from emulator.auth.signing_key import SigningKey
from emulator.auth.tokens import Tokens
from emulator.core.callers import Caller
from emulator.core.clock import Clock
from emulator.core.environment import PRODUCTION, SANDBOX, Environment
from emulator.core.errors import ServiceError
from emulator.core.extensions import Extension, Extensions
from emulator.core.observability.request_context import RequestContext, in_context
from emulator.core.settings import Settings
from emulator.core.wire.url import parse_query
from support.examples import examples
from support.service import CLIENT_ID, OTHER_ID, SECRET
from support.signing import NOW, signed

OTHER_SECRET = b"another secret of thirty-two bytes"
QUERIES = st.lists(
    st.sampled_from([b"&", b"=", b"+", b"%", b"%20", b"%2B", b"%C3%A9", b"%ff", b"%zz", b"id", b"a"])
    | st.binary(max_size=3),
    max_size=12,
).map(b"".join)
STEPS = st.lists(
    st.tuples(st.just("verify"), st.integers(0, 3))
    | st.tuples(st.just("wait"), st.integers(1, 400))
    | st.tuples(st.just("reload"), st.integers(0, 2)),
    max_size=8,
)
TOKENS = [
    f"{CLIENT_ID} {signed({'alg': 'HS256'}, {'role': 'viewer', 'user_id': '1', 'exp': NOW + 600, **more}, key=key)}"
    for key in (SECRET, OTHER_SECRET)
    for more in ({}, {"nbf": NOW + 300})
]
IDS = st.sampled_from(["", "1", "U1", "A-1", "é", "\ud800", 7, None, 1.5, True, []]) | st.text(max_size=5)
ODD = st.sampled_from([None, True, -1, 0, 10**11 - 1, 10**11, 10**30, 2.5, "2000000000", []])
ODD_CLAIMS = st.fixed_dictionaries(
    {},
    optional={
        "exp": st.integers(1, 4 * 10**9) | ODD,
        "iat": st.integers(1, 4 * 10**9) | ODD,
        "nbf": st.integers(1, 4 * 10**9),
        "role": st.sampled_from(["viewer", "broadcaster", "admin", "backend", "external", "", None, 5]),
        "channel_id": IDS,
        "user_id": IDS,
        "opaque_user_id": IDS,
        "is_unlinked": st.booleans(),
        "jti": IDS,
        "use": st.sampled_from(["pin", "refresh"]),
        "allowed_stage": st.just("sandbox"),
        "extension_id": IDS,
        "app_id": IDS,
        "pubsub_perms": st.just({"listen": ["broadcast", "global"], "send": []}) | ODD,
    },
)
USUAL_CLAIMS = st.fixed_dictionaries(
    {"exp": st.integers(1, 10**11 - 1)},
    optional={
        "role": st.sampled_from(["viewer", "broadcaster", "admin", "backend", "external", ""]),
        **dict.fromkeys(("channel_id", "user_id", "opaque_user_id"), st.sampled_from(["", "1", "U1", "A-1"])),
    },
)
ONE_ODD_CLAIM = ODD_CLAIMS.flatmap(lambda claims: st.sampled_from([{}, *({name: claims[name]} for name in claims)]))
CLAIM_SETS = ODD_CLAIMS | st.builds(lambda usual, odd: usual | odd, USUAL_CLAIMS, ONE_ODD_CLAIM)
PLATFORM = {"exp": NOW + 600, "role": "viewer", "channel_id": "777", "user_id": "5551", "opaque_user_id": "U5551"}
SIGNING_WRITERS = {"the extension": SECRET, "the service": None, "another extension": OTHER_SECRET}


@settings(max_examples=examples(400), deadline=None)
@given(QUERIES)
def test_a_query_reads_as_each_of_its_parameters_by_itself(raw: bytes):
    expected: dict[str, str] = {}
    for part in filter(None, raw.decode("latin-1").split("&")):
        name, _, value = part.partition("=")
        expected.setdefault(unquote_plus(name), unquote_plus(value))

    assert [expected, expected] == [parse_query(raw), parse_query(raw)]


@settings(max_examples=examples(80), deadline=None)
@given(STEPS)
def test_a_cached_token_agrees_with_its_verification_or_abstains(steps: list[tuple[str, int]]):
    now = NOW * 1000
    clock = Clock(lambda: now)
    registered = [{CLIENT_ID: Extension(CLIENT_ID, (key,))} for key in (SECRET, OTHER_SECRET)] + [{}]
    extensions = Extensions(registered[0], admits_any=False)
    key = SigningKey(documents=None, clock=clock)
    tokens = Tokens(Settings(PRODUCTION), extensions, clock, key)
    for step, value in steps:
        if step == "verify":
            outcome(tokens, TOKENS[value])
        elif step == "wait":
            now += value * 1000
        else:
            extensions.current = registered[value]
        for token in TOKENS:
            try:
                cached = tokens.cached_caller(token)
            except ServiceError as error:
                cached = error.detail
            assert cached in (None, outcome(Tokens(Settings(PRODUCTION), extensions, clock, key), token))


@settings(max_examples=examples(80), deadline=None)
@given(
    CLAIM_SETS,
    st.sampled_from(list(SIGNING_WRITERS)),
    st.sampled_from([SANDBOX, PRODUCTION]),
    st.sets(st.sampled_from([CLIENT_ID, OTHER_ID])),
)
@example(PLATFORM, "the extension", SANDBOX, {CLIENT_ID})
@example(PLATFORM | {"opaque_user_id": ""}, "the extension", PRODUCTION, {CLIENT_ID})
def test_a_token_with_usual_claims_agrees_with_the_same_token_and_an_unusual_claim(
    claims: dict[str, Any], signer: str, environment: Environment, registered: set[str]
):
    clock = Clock(lambda: NOW * 1000)
    extensions = Extensions({each: Extension(each, (SECRET,)) for each in registered}, admits_any=True)
    service_key = SigningKey(documents=None, clock=clock)
    tokens = Tokens(Settings(environment), extensions, clock, service_key)
    key = SIGNING_WRITERS[signer] or service_key.value.encode()

    usual, unusual = (
        verdict_on(tokens, f"{CLIENT_ID} {signed({'alg': 'HS256'}, claims | more, key=key)}")
        for more in ({}, {"unknown": 1})
    )

    assert unusual == usual


def verdict_on(tokens: Tokens, token: str) -> tuple[Caller | str, str]:
    """Return the caller of a token, or why it is refused, and what production would say."""
    context = RequestContext("1")
    with in_context(context):
        return outcome(tokens, token), context.production


def outcome(tokens: Tokens, token: str) -> Caller | str:
    """Return the caller of a token, or why it is refused."""
    try:
        return tokens.verify(token).caller
    except ServiceError as error:
        return error.detail
