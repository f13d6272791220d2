"""`extcli trivia`."""

from __future__ import annotations

import pytest


@pytest.fixture
def question(extcli) -> str:
    """An unlocked question with the options `red` and `blue`."""
    extcli("trivia", "define", "q1", "--name", "Which team wins?")
    for option in ("red", "blue"):
        extcli("trivia", "define-option", "q1", option, "--name", f"The {option} team")
    assert "unlocked\n" == extcli("trivia", "move", "q1", "unlocked").stdout
    return "q1"


def test_a_new_question_is_inactive_and_listed_for_backends_only(extcli):
    extcli("trivia", "define", "q1", "--name", "Who?", "--order", "2", "--image", "https://example.com/a.png")

    assert [] == extcli("trivia", "list").rows
    assert [["q1", "inactive", "Who?", "", ""]] == extcli("trivia", "list", "--as", "backend").rows
    stored = extcli("trivia", "get", "q1", "--as", "backend", "-o", "json").json
    assert {"order": 2, "image": "https://example.com/a.png"}.items() <= stored.items()


def test_defining_again_keeps_the_texts_that_are_not_given(extcli, question):
    extcli("trivia", "define", question, "--order", "2", "--description", "The final")
    extcli("trivia", "define-option", question, "red", "--short-name", "R")

    stored = extcli("trivia", "get", question, "-o", "json").json
    assert {"name": "Which team wins?", "description": "The final", "order": 2}.items() <= stored.items()
    [red] = [each for each in stored["options"] if each["id"] == "red"]
    assert {"name": "The red team", "short_name": "R"}.items() <= red.items()


def test_a_vote_and_the_winner_are_marked(extcli, question):
    assert 0 == extcli("trivia", "vote", question, "red").exit_code
    extcli("trivia", "vote", question, "blue", "--as", "viewer:U2")
    extcli("trivia", "move", question, "results", "--winner", "red")

    marks = {option: mark for option, _, mark in extcli("trivia", "get", question).rows}
    assert {"red": "winner, yours", "blue": ""} == marks
    other = {option: mark for option, _, mark in extcli("trivia", "get", question, "--as", "viewer:U2").rows}
    assert {"red": "winner", "blue": "yours"} == other
    assert [["q1", "results", "Which team wins?", "red", "red"]] == extcli("trivia", "list").rows


def test_the_leaderboard_lists_the_best_team_first(extcli, question):
    extcli("trivia", "vote", question, "blue", "--as", "viewer:U1", "--channel", "1001")
    extcli("trivia", "vote", question, "red", "--as", "viewer:U2", "--channel", "2002")
    extcli("trivia", "move", question, "results", "--winner", "red")

    assert [["2002", "50"], ["1001", "0"]] == extcli("trivia", "leaderboard").rows
    assert [["1001"]] == extcli("trivia", "team").rows
    assert [["2002"]] == extcli("trivia", "join", "--channel", "2002", "--as", "viewer:U2").rows


def test_removed_options_and_questions_are_gone(extcli, question):
    assert [["red", "The red team", ""]] == extcli("trivia", "rm-option", question, "blue").rows
    extcli("trivia", "rm", question, exits=0)

    assert [] == extcli("trivia", "list", "--as", "backend").rows
    extcli("trivia", "rm", question, exits=4)


def test_control_characters_in_questions_are_escaped(extcli):
    extcli("trivia", "define", "q1", "--name", "\x1b[31mred")

    for output in ("plain", "table"):
        assert "\x1b" not in extcli("trivia", "list", "--as", "backend", "-o", output).stdout
        assert "\x1b" not in extcli("trivia", "get", "q1", "--as", "backend", "-o", output).stdout
