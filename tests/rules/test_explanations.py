"""Every refusal has a rule, says what was held and what was needed, and what to do."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
import typer.main

from emulator.contract import rules
from emulator.contract.parity import RULES
from emulator.control import explanations
from emulator.control.explanations import explain_verdict
from emulator.core.errors import REFUSALS
from extcli.app import NOUNS, app, load_noun


def commands() -> Iterator[str]:
    """The commands that explanations and rules recommend, without `extcli`."""
    steps = [each.get("next_step", "") for each in rules.rules().values()] + [
        each.next_step for each in REFUSALS.values()
    ]
    for text in steps:
        yield from re.findall(r"`extcli ([^`]+)`", text)


@pytest.mark.slow
def test_every_recommended_command_exists():
    shared = {name for each in typer.main.get_command(app).params for name in each.opts}
    wrong = []
    for line in commands():
        noun, *words = line.split()
        command = load_noun(noun) if noun in NOUNS else None
        if words and hasattr(command, "commands"):
            command = command.commands.get(words[0], command if words[0].startswith("-") else None)
        visible = [each for each in getattr(command, "params", ()) if not getattr(each, "hidden", False)]
        options = {name for each in visible for name in each.opts} | shared
        is_noun = hasattr(command, "commands") and not command.invoke_without_command
        if (
            is_noun
            or command is None
            or any(word != "--help" and word.startswith("--") and word not in options for word in words)
        ):
            wrong.append(line)

    assert [] == wrong


def test_every_rule_of_production_has_a_text():
    assert [] == [rule for rule in RULES if explain_verdict(f"refuse; rule={rule}") is None]


@pytest.mark.parametrize(
    ("name", "id"),
    [("a1", "A1"), ("A1", "A1"), ("trivia", "gaps: Trivia"), ("spec:authentication", "spec: Authentication"),
     ("Links and Sockets", "gaps: Links and sockets"), ("caller-rate", "caller-rate")],
)  # fmt: skip
def test_a_rule_is_found_in_any_case_and_without_its_prefix(name: str, id: str):
    found = explanations.find_rule(name)

    assert found is not None
    assert id == found.id


@pytest.mark.parametrize(
    ("name", "id"), [("A11", "A1"), ("authentification", "spec: Authentication"), ("stag", "stage")]
)
def test_the_nearest_rules_are_those_that_look_alike(name: str, id: str):
    assert explanations.find_rule(name) is None
    assert id in explanations.similar_rules(name)
