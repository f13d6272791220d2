"""Every declared refusal says what was held, what was needed and what to do."""

from __future__ import annotations

import string
from collections.abc import Callable
from inspect import signature
from typing import get_type_hints

import pytest

import emulator.feature_list
from emulator.auth import refusals as auth
from emulator.callers import CHANNEL_WRITERS, Role, role_error
from emulator.control.explanations import texts
from emulator.control.explanations.rules import what_was_sent
from emulator.errors import BadRequest, NotFound
from emulator.features.trivia import refusals as trivia
from emulator.limits import refusals as limits
from emulator.refusals import OF_INPUT, OF_ROLES, REFUSALS, Declared, Facts

assert emulator.feature_list  # it imports all features, and so declares their refusals

SAMPLES = {int: 7, str: "seven"}
"""A value for a parameter by its type; for other types, a list of texts."""


def sample(facts: Callable[..., Facts]) -> Facts:
    hints = {name: hint for name, hint in get_type_hints(facts).items() if name != "return"}
    return facts(**{name: SAMPLES.get(hint, ["one", "two"]) for name, hint in hints.items()})


every = pytest.mark.parametrize("declared", REFUSALS.values(), ids=REFUSALS)


@every
def test_a_refusal_says_what_was_held_and_needed(declared: Declared):
    found = sample(declared.facts)

    assert all((found.detail, found.held, found.needed, declared.reason, declared.title, declared.next_step))
    assert declared.rule in {OF_INPUT, OF_ROLES, *texts.rules()}


@every
def test_a_refusal_names_only_parameters_of_its_own(declared: Declared):
    texts_of = declared.reason + declared.next_step
    named = {field for _, field, _, _ in string.Formatter().parse(texts_of) if field}

    assert named <= set(signature(declared.facts).parameters)


def test_a_refusal_makes_an_error_with_what_explain_says():
    error = trivia.not_unlocked(question="q1", state="state-locked", takes_votes="state-unlocked")

    assert isinstance(error, BadRequest)
    assert ("question is not unlocked", "q1 is in state-locked; it takes votes in state-unlocked") == (
        error.reason,
        error.detail,
    )
    assert error.refused is not None
    assert ("trivia.not_unlocked", "state state-locked") == (error.refused.code, error.refused.held)
    assert "Unlock it: `extcli trivia move q1 unlocked`." == error.refused.next_step


def test_a_value_in_a_command_is_quoted_for_a_shell():
    error = trivia.no_question(question="$(reboot)")

    assert error.refused is not None
    assert "`extcli trivia define '$(reboot)'`" in error.refused.next_step


def test_a_refusal_is_named_after_its_feature_and_function():
    assert {"trivia.no_question", "trivia.no_option"} <= set(REFUSALS)
    assert all(code.count(".") == 1 for code in REFUSALS)


def test_a_missing_value_is_an_error_of_the_caller():
    with pytest.raises(TypeError):
        trivia.no_option(question="q1")  # type: ignore[call-arg]


def test_a_refusal_keeps_the_status_of_its_error():
    assert (404, NotFound) == (trivia.no_question(question="q1").status, REFUSALS["trivia.no_question"].error)


@pytest.mark.parametrize(
    ("path", "body", "detail", "held"),
    [
        ("/v1/e/vote", b'{"count":"3"}', "count: expected an integer, got a string", 'count "3"'),
        ("/v1/e/vote", b'{"count":', "count: expected an integer, got a string", ""),
        ("/v1/e/vote", b"[]", "expected an object, got an array", "the body []"),
        ("/v1/e/codes", b'{"prizes":[0,9]}', "prizes[1]: there is nothing", "prizes[1] 9"),
        ("/v1/e/vote_logs?limit=-1", b"", "limit: -1 is not 0 or more", 'limit "-1"'),
        ("/v1/e/vote_logs?limit=a&limit=5", b"", "limit: 'a' is not a number", 'limit "a"'),
        ("/v1/e/vote_logs?limit=&limit=5", b"", "limit: '' is not a number", 'limit ""'),
    ],
)
def test_a_refused_value_is_explained_by_what_was_sent(path: str, body: bytes, detail: str, held: str):
    assert held == what_was_sent(detail, path, body)


@pytest.mark.parametrize(
    ("seconds", "ago"),
    [(59, "59 s"), (60, "1 min"), (3_599, "59 min"), (3_600, "1 h"), (86_400, "1 day"), (172_800, "2 days")],
)
def test_how_long_ago_a_token_expired_is_shown_in_the_largest_unit(seconds: int, ago: str):
    refused = auth.expired(exp=1000, now=1000 + seconds).refused

    assert refused is not None
    assert f"exp 1970-01-01T00:16:40Z, {ago} ago" == refused.held


def test_a_refused_role_is_told_the_roles_that_may_in_their_order():
    error = role_error(Role.VIEWER, CHANNEL_WRITERS)

    assert error.refused is not None
    assert "the role viewer may not do this; allowed: admin, backend, broadcaster" == error.detail
    assert (
        "role broadcaster, admin or backend",
        "Send a token of the role broadcaster (with extcli: `--as broadcaster`).",
    ) == (
        error.refused.needed,
        error.refused.next_step,
    )


def test_a_rate_says_when_the_next_request_is_allowed():
    error = limits.too_many_requests(by="from this caller", seconds=3)

    assert ("too many requests from this caller; retry in 3 s", 3) == (error.detail, error.retry_after)
