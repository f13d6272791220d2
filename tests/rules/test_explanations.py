"""Every refusal has a rule, says what was held and what was needed, and what to do."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
import typer.main

from emulator.control.explanations import texts
from emulator.control.explanations.rules import rules_about, what_was_sent
from emulator.control.explanations.service import explained_verdict
from emulator.errors import REFUSALS
from emulator.parity.service import ANSWERS
from extcli.app import NOUNS, app, load_noun
from tools import ruling_texts
from tools.ruling_texts import ROOT


@pytest.mark.parametrize(
    "name", ["POST /v1/e/vote", "PATCH /v1/e/channel_state", "PUT /_emulator/seed", "get poll", ""]
)
def test_the_rule_about_an_input_follows_from_the_endpoint(name: str):
    assert set(rules_about(name)) <= set(texts.rules())


def commands() -> Iterator[str]:
    """The commands that explanations and rules recommend, without `extcli`."""
    steps = [each.next_step for each in (*texts.rules().values(), *REFUSALS.values())]
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


def test_no_recommended_command_has_a_pin_as_an_argument():
    # `extcli` reads PINs from a prompt or a pipe only.
    assert [] == [line for line in commands() if "PIN" in line.split()]


def test_a_text_of_an_explanation_is_shortened():
    assert ("x" * 200, "x" * 199 + "…") == (texts.shortened("x" * 200), texts.shortened("x" * 201))


@pytest.mark.parametrize(("length", "is_shown"), [(60, True), (61, False)])
def test_a_body_that_is_wrong_as_a_whole_is_shown_if_it_is_short(length: int, is_shown: bool):
    body = "y" * length
    found = what_was_sent("must be an object", "", body.encode())

    assert is_shown == (f"the body {body}" == found)


@pytest.mark.parametrize("rule", ANSWERS)
def test_every_rule_of_production_has_a_text_and_a_next_step(rule: str):
    found = explained_verdict(f"refuse; rule={rule}")

    assert found is not None
    assert ("refuse", rule) == (found.verdict, found.rule)
    assert found.text
    assert found.why
    assert found.next_step


@pytest.mark.parametrize("header", ["", "nonsense"])
def test_no_difference_of_production_has_no_explanation(header: str):
    assert explained_verdict(header) is None


@pytest.mark.parametrize(
    ("name", "id"),
    [("a1", "A1"), ("A1", "A1"), ("trivia", "gaps: Trivia"), ("spec:authentication", "spec: Authentication"),
     ("Links and Sockets", "gaps: Links and sockets"), ("caller-rate", "caller-rate")],
)  # fmt: skip
def test_a_rule_is_found_in_any_case_and_without_its_prefix(name: str, id: str):
    found = texts.find(name)

    assert found is not None
    assert id == found.id


@pytest.mark.parametrize("name", ["", " "])
def test_an_empty_name_is_not_a_rule(name: str):
    assert texts.find(name) is None


@pytest.mark.parametrize(
    ("name", "id"), [("A11", "A1"), ("authentification", "spec: Authentication"), ("stag", "stage")]
)
def test_the_nearest_rules_are_those_that_look_alike(name: str, id: str):
    assert texts.find(name) is None
    assert id in texts.nearest(name)


def test_the_texts_of_rulings_are_those_of_the_documentation():
    assert ruling_texts.page() == ruling_texts.FILE.read_text()


def test_the_documentation_that_a_rule_names_exists():
    named = {rule.documented for rule in texts.rules().values() if rule.documented.startswith("docs/")}
    files = {re.split("[#,]", each)[0] for each in named}
    anchors = {each: each.partition("#")[2] for each in named if "#" in each}

    assert [] == [file for file in files if not (ROOT / file).exists()]
    assert [] == [each for each, anchor in anchors.items() if anchor not in headings(each.partition("#")[0])]


def headings(document: str) -> set[str]:
    """The anchors of a document's headings."""
    found = re.findall(r"^#+ (.+)$", (ROOT / document).read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in found}


def test_every_rule_says_where_it_is_documented():
    assert [] == [rule.id for rule in texts.rules().values() if not rule.text or not rule.documented]
