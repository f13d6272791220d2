"""Every declared refusal says what was held, what was needed and what to do."""

from __future__ import annotations

import pytest

from emulator.auth import refusals as auth
from emulator.control.explanations import texts
from emulator.control.explanations.rules import what_was_sent
from emulator.errors import OF_INPUT, OF_ROLES
from emulator.features.trivia import refusals as trivia
from tools import refusal_texts


def test_the_texts_of_every_refusal_equal_the_file():
    assert refusal_texts.PATH.read_text() == refusal_texts.written()  # `make docs` writes it


def test_the_rule_of_every_refusal_exists():
    assert {each.rule for each in refusal_texts.declared().values()} <= {OF_INPUT, OF_ROLES, *texts.rules()}


def test_a_value_in_a_command_is_quoted_for_a_shell():
    error = trivia.no_question(question="$(reboot)")

    assert error.refused is not None
    assert "`extcli trivia define '$(reboot)'`" in error.refused.next_step


def test_a_missing_value_is_an_error_of_the_caller():
    with pytest.raises(TypeError):
        trivia.no_option(question="q1")  # type: ignore[call-arg]


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
def test_explaining_a_refusal_names_the_value_that_the_request_sent(path: str, body: bytes, detail: str, held: str):
    assert held == what_was_sent(detail, path, body)


@pytest.mark.parametrize(
    ("seconds", "ago"),
    [(59, "59 s"), (60, "1 min"), (3_599, "59 min"), (3_600, "1 h"), (86_400, "1 day"), (172_800, "2 days")],
)
def test_how_long_ago_a_token_expired_is_shown_in_the_largest_unit(seconds: int, ago: str):
    refused = auth.expired(exp=1000, now=1000 + seconds).refused

    assert refused is not None
    assert f"exp 1970-01-01T00:16:40Z, {ago} ago" == refused.held
