"""Every declared refusal says what was held, what was needed and what to do."""

from __future__ import annotations

from inspect import signature
from sys import modules

import pytest

from emulator.contract import rules
from emulator.control.explanations import sent_value
from emulator.core.errors import OF_INPUT, OF_ROLES
from emulator.features.trivia import rules as trivia
from tools.interface_pages import declared


def test_each_refusal_says_what_was_held_what_was_needed_and_what_to_do():
    for code, declaration in declared().items():
        refuse = getattr(modules[declaration.facts.__module__], declaration.facts.__name__)
        parameters = signature(declaration.facts, eval_str=True).parameters.values()

        error = refuse(**{each.name: sample(each.annotation) for each in parameters})

        assert error.refused is not None, code
        assert all((error.detail, error.refused.held, error.refused.needed, error.refused.next_step)), code


def sample(annotation: object) -> object:
    if "Sequence" in str(annotation) or "Iterable" in str(annotation):
        return ["one", "two"]
    return 7 if annotation is int else "text"


def test_the_rule_of_every_refusal_exists():
    assert {each.rule for each in declared().values()} <= {OF_INPUT, OF_ROLES, *rules.rules()}


def test_a_value_in_a_command_is_quoted_for_a_shell():
    error = trivia.no_question(question="$(reboot)")

    assert error.refused is not None
    assert "`extcli trivia define '$(reboot)'`" in error.refused.next_step


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
    assert held == sent_value(detail, path, body)
