"""`extcli vote define`, `edit`, `close` and `reopen`."""

from __future__ import annotations

import json
import subprocess

import pytest

from support.faults import add_fault
from support.program import PROGRAM
from support.service import LiveServer


def definition_of(extcli, poll="lunch"):
    return extcli("vote", "define", poll, "--show", "-o", "json").json


def test_a_definition_can_be_written_and_read(extcli):
    extcli("vote", "define", "lunch", "--prompt", "Which?", "--options", "Rock, Paper", "--user-data", '{"hard":true}')

    poll = extcli("vote", "define", "lunch", "--show", "-o", "json").json

    assert ("Which?", ["Rock", "Paper"], {"hard": True}) == (poll["prompt"], poll["options"], poll["userData"])
    assert "active" == poll["status"]


def test_option_allows_commas(extcli):
    extcli("vote", "define", "lunch", "--option", "Rock, loud", "--option", "Paper")

    assert ["Rock, loud", "Paper"] == extcli("vote", "define", "lunch", "--show", "-o", "json").json["options"]


def test_define_can_let_several_votes_of_a_user_add_up(extcli):
    """Ruling P4."""
    extcli("vote", "define", "lunch", "--options", "A,B", "--total-votes", "5", "--votes-per-option", "5")

    poll = extcli("vote", "cast", "lunch", "--value", "1", "--count", "4", "-o", "json").json

    assert 4 == poll["stats"]["count"]


@pytest.mark.parametrize("defined", [False, True], ids=["no definition", "one vote per user"])
def test_a_count_for_a_poll_of_one_vote_per_user_is_an_error(extcli, defined):
    """The service would ignore it."""
    if defined:
        extcli("vote", "define", "lunch", "--options", "A,B")

    result = extcli("vote", "cast", "lunch", "--value", "1", "--count", "5", fails=2)

    assert "poll lunch takes one vote per user" in result.stderr
    assert "" == extcli("vote", "get", "lunch").stdout
    assert 0 == extcli("vote", "cast", "lunch", "--value", "1", "--count", "1").exit_code


def test_show_of_a_poll_without_a_definition_is_refused(extcli):
    result = extcli("vote", "define", "nothing", "--show", fails=4)

    assert "the poll nothing has no definition" in result.stderr


@pytest.fixture
def lunch(extcli):
    """A poll with a definition and one vote."""
    extcli("vote", "define", "lunch", "--prompt", "Which?", "--options", "A,B", "--user-data", '{"n":1}')
    extcli("vote", "cast", "lunch", "--value", "1")


@pytest.mark.parametrize(
    ("flags", "lost"),
    [
        ((), "prompt, options and user data"),
        (("--disabled",), "prompt, options and user data"),
        (("--ends-in", "90s"), "prompt, options and user data"),
        (("--prompt", "Lunch?"), "options and user data"),
        (("--prompt", "Lunch?", "--options", "A"), "user data"),
    ],
    ids=str,
)
def test_define_refuses_to_drop_fields_of_a_poll(extcli, lunch, flags, lost):
    before = definition_of(extcli)

    result = extcli("vote", "define", "lunch", *flags, fails=2)

    assert f"would delete its {lost}\n" in result.stderr
    assert "use `extcli vote edit` to change parts, or add --replace" in result.stderr
    assert before == definition_of(extcli)


@pytest.mark.parametrize(
    ("flags", "lost"),
    [
        (("--starts-in", "1h"), "start"),
        (("--ends-in", "1h"), "end"),
        (("--total-votes", "5"), "votes per user"),
        (("--votes-per-option", "2"), "votes per option"),
        (("--distinct-options", "2"), "options per user"),
        (("--user-id-voting",), "restriction to users who share their identity"),
        (("--disabled",), "setting --disabled"),
    ],
    ids=str,
)
def test_define_refuses_to_drop_times_and_limits(extcli, flags, lost):
    extcli("vote", "define", "lunch", "--prompt", "Which?", *flags)

    result = extcli("vote", "define", "lunch", "--prompt", "Lunch?", exits=2)

    assert f"would delete its {lost}\n" in result.stderr
    assert 0 == extcli("vote", "define", "lunch", "--prompt", "Lunch?", *flags).exit_code


@pytest.mark.parametrize("data", ["0", "1", "false", '""', "[]"])
def test_define_refuses_to_drop_any_user_data(extcli, data: str):
    extcli("vote", "define", "lunch", "--user-data", data)

    result = extcli("vote", "define", "lunch", "--prompt", "Lunch?", exits=2)

    assert "would delete its user data\n" in result.stderr
    assert json.loads(data) == definition_of(extcli)["userData"]


def test_edit_removes_user_data(extcli, lunch):
    extcli("vote", "edit", "lunch", "--user-data", "null", exits=0)

    assert ("Which?", None) == tuple(definition_of(extcli)[name] for name in ("prompt", "userData"))


@pytest.mark.parametrize(("option", "problem"), [("--user-data", "is not JSON"), ("--options", "is empty")])
def test_an_empty_value_is_refused(extcli, lunch, option: str, problem: str):
    assert f"{option} {problem}" in extcli("vote", "edit", "lunch", option, "", exits=2).stderr


def test_define_with_replace_drops_fields_that_are_not_given(extcli, lunch):
    assert 0 == extcli("vote", "define", "lunch", "--disabled", "--replace").exit_code

    poll = definition_of(extcli)
    assert (True, "", [], None) == (poll["disabled"], poll["prompt"], poll["options"], poll["userData"])


@pytest.mark.parametrize("verb", ["define", "edit"])
def test_define_and_edit_print_when_the_poll_opens_and_closes(extcli, verb):
    extcli("vote", "define", "lunch", "--prompt", "Which?")
    window = ("--starts-at", "2026-11-22T18:00Z", "--ends-at", "2026-11-22T21:00:30+01:00")

    result = extcli("vote", verb, "lunch", "--prompt", "Lunch?", *window, "-o", "table")

    times = "opens at 2026-11-22 18:00:00Z; closes at 2026-11-22 20:00:30Z"
    assert f"poll lunch; {times}\n" in result.stderr
    for_a_while = extcli("vote", "edit", "lunch", "--starts-at", "0", "--ends-in", "90s", "-o", "table")
    assert "changed poll lunch; closes in 1m 30s\n" == for_a_while.stderr
    assert "changed poll lunch\n" == extcli("vote", "edit", "lunch", "--prompt", "Which?", "-o", "table").stderr


@pytest.mark.parametrize("verb", ["define", "edit", "reopen"])
def test_a_time_of_day_alone_is_refused_with_the_form_of_local_time(extcli, verb):
    result = extcli("vote", verb, "lunch", "--ends-at", "18:00", exits=2)

    assert 'write local time ("2026-11-22 18:00")' in result.stderr
    assert 'local time ("2026-11-22 18:00")' in " ".join(extcli("vote", verb, "--help").stdout.split())


def test_edit_changes_the_given_members_only(extcli, lunch, live):
    now = live.freeze()
    before = definition_of(extcli)

    assert 0 == extcli("vote", "edit", "lunch", "--prompt", "Really?", "--ends-in", "90s", "--disabled").exit_code

    end = -(-now // 1000) + 90
    assert before | {"prompt": "Really?", "endsAt": end, "disabled": True} == definition_of(extcli)
    assert [["1", "1"]] == extcli("vote", "get", "lunch").rows


def test_edit_can_reverse_every_switch(extcli, lunch):
    extcli("vote", "edit", "lunch", "--disabled", "--user-id-voting")

    extcli("vote", "edit", "lunch", "--enabled", "--no-user-id-voting")

    assert (False, False) == (definition_of(extcli)["disabled"], definition_of(extcli)["userIDVoting"])


@pytest.mark.parametrize("command", [("edit", "--disabled"), ("close",), ("reopen",)], ids=lambda words: words[0])
def test_a_poll_that_does_not_exist_cannot_be_changed(extcli, command):
    verb, *options = command

    result = extcli("vote", verb, "typo", *options, exits=4)

    assert "the poll typo has no definition" in result.stderr
    assert "extcli vote define" in result.stderr


def test_a_closed_poll_refuses_votes_and_keeps_its_definition(extcli, lunch):
    before = definition_of(extcli)

    assert 0 == extcli("vote", "close", "lunch").exit_code

    assert "poll is closed" in extcli("vote", "cast", "lunch", "--value", "0").stderr
    assert [["1", "1"]] == extcli("vote", "get", "lunch").rows
    after = definition_of(extcli)
    assert "expired" == after["status"]
    assert before == after | {"endsAt": 0, "status": "active"}


def test_a_poll_without_a_definition_can_be_closed(extcli):
    extcli("vote", "cast", "lunch", "--value", "1")

    assert 0 == extcli("vote", "close", "lunch").exit_code

    assert "poll is closed" in extcli("vote", "cast", "lunch", "--value", "0").stderr


def test_a_poll_that_has_not_started_can_be_closed(extcli):
    extcli("vote", "define", "lunch", "--options", "A,B", "--starts-in", "1h")

    assert 0 == extcli("vote", "close", "lunch").exit_code

    assert "expired" == definition_of(extcli)["status"]


def test_closing_a_closed_poll_keeps_its_end(extcli, lunch, live):
    extcli("vote", "close", "lunch")
    before = definition_of(extcli)
    live.advance(5_000)

    result = extcli("vote", "close", "lunch")

    assert (0, "poll lunch was closed already\n") == (result.exit_code, result.stderr)
    assert before == definition_of(extcli)


@pytest.mark.parametrize(
    "ended",
    [("close",), ("edit", "--disabled"), ("edit", "--starts-in", "1h")],
    ids=["closed", "disabled", "not started"],
)
def test_a_reopened_poll_accepts_votes(extcli, lunch, ended):
    verb, *options = ended
    extcli("vote", verb, "lunch", *options)
    assert 4 == extcli("vote", "cast", "lunch", "--value", "0").exit_code

    assert 0 == extcli("vote", "reopen", "lunch").exit_code

    assert [["0", "1"]] == extcli("vote", "cast", "lunch", "--value", "0").rows
    assert (0, "Which?") == (definition_of(extcli)["endsAt"], definition_of(extcli)["prompt"])


def test_a_poll_can_be_reopened_for_a_while(extcli, lunch, live):
    extcli("vote", "close", "lunch")
    now = live.freeze()

    extcli("vote", "reopen", "lunch", "--ends-in", "90s")

    assert -(-now // 1000) + 90 == definition_of(extcli)["endsAt"]


@pytest.mark.slow
def test_edits_of_one_poll_at_once_all_take_effect(live: LiveServer):
    url = ("--url", live.url, "--channel", "777")
    subprocess.run([PROGRAM, "vote", "define", "lunch", "--prompt", "before", *url], check=True)
    for number in range(2, 5):
        edits = [("--prompt", f"round {number}"), ("--total-votes", str(number)), ("--user-data", str(number))]
        running = [subprocess.Popen([PROGRAM, "vote", "edit", "lunch", *each, *url]) for each in edits]
        assert [0, 0, 0] == [each.wait(60) for each in running]

        found = live.client("broadcaster", user="777", channel="777").get("vote_config?id=lunch").json()
        assert (f"round {number}", number, number) == (found["prompt"], found["totalVotesPerUser"], found["userData"])


def test_define_writes_only_over_the_definition_it_has_read(extcli, live):
    shown = extcli("vote", "define", "lunch", "--prompt", "Which?", "--dry-run", "-o", "json").json
    assert {} == shown["body"]["expected"]
    extcli("vote", "define", "lunch", "--prompt", "Which?")
    read = definition_of(extcli)
    shown = extcli("vote", "define", "lunch", "--prompt", "Lunch?", "--dry-run", "-o", "json").json
    assert read == shown["body"]["expected"]

    add_fault(live, "POST /v1/e/vote_config", "status", status=409, times=1)
    assert 0 == extcli("vote", "define", "lunch", "--prompt", "Lunch?").exit_code

    assert "Lunch?" == definition_of(extcli)["prompt"]
