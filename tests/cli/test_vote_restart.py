"""`extcli vote restart`: deletes the votes of a poll, and keeps its definition."""

from __future__ import annotations

import shlex

import pytest

from support.faults import add_fault


def definition_of(extcli):
    return extcli("vote", "config", "weekly", "-o", "json").json


@pytest.fixture
def weekly(extcli):
    """A poll with a definition and one vote."""
    extcli("vote", "define", "weekly", "--prompt", "Which?", "--options", "A,B", "--user-data", '{"n":1}')
    extcli("vote", "cast", "weekly", "--value", "1")


def test_a_restarted_poll_has_no_votes_and_the_same_definition(extcli):
    extcli("vote", "define", "weekly", "--prompt", "Which?", "--options", "A,B", "--ends-in", "2d")
    extcli("vote", "cast", "weekly", "--value", "1")
    before = definition_of(extcli)

    restarted = extcli("vote", "restart", "weekly", "-o", "table")

    assert (0, "poll weekly has no votes now, and the same definition\n") == (restarted.exit_code, restarted.stderr)
    assert before == definition_of(extcli)
    assert 0 == extcli("vote", "get", "weekly", "-o", "json").json["stats"]["count"]


def test_a_poll_that_has_ended_restarts_with_a_new_end(extcli):
    extcli("vote", "define", "weekly", "--prompt", "Which?", "--ends-in", "2d")
    extcli("vote", "close", "weekly")

    refused = extcli("vote", "restart", "weekly")
    extcli("vote", "restart", "weekly", "--ends-in", "7d", exits=0)

    assert (2, True) == (refused.exit_code, "give its new end: --ends-in 7d" in refused.stderr)
    assert ("active", "Which?") == tuple(definition_of(extcli)[name] for name in ("status", "prompt"))


def test_a_poll_without_a_definition_is_not_restarted(extcli):
    assert 4 == extcli("vote", "restart", "weekly").exit_code


@pytest.mark.parametrize(("status", "code"), [(400, 4), (503, 5)])
def test_a_refused_restart_changes_nothing(extcli, live, weekly, status, code):
    before = definition_of(extcli)
    add_fault(live, "POST /v1/e/vote_config", "status", status=status, times=1)

    assert code == extcli("vote", "restart", "weekly").exit_code

    assert before == definition_of(extcli)
    assert [["1", "1"]] == extcli("vote", "get", "weekly").rows


@pytest.mark.parametrize("effect", [{"effect": "status", "status": 503}, {"effect": "reset"}], ids=["503", "reset"])
@pytest.mark.parametrize("call", ["DELETE /v1/e/vote", "POST /v1/e/vote_config"])
def test_a_restart_repeats_a_call_that_fails_once(extcli, live, weekly, call, effect):
    before = definition_of(extcli)
    second = {"share": 0.8} if call.startswith("POST") else {}  # of its random numbers 0.84, 0.76, … the second hits
    add_fault(live, call, times=1, **effect, **second)

    assert 0 == extcli("vote", "restart", "weekly").exit_code

    assert before == definition_of(extcli)
    assert [] == extcli("vote", "get", "weekly").rows


def test_a_restart_that_stops_halfway_prints_how_to_define_the_poll_again(extcli, live):
    extcli("vote", "define", "weekly", "--prompt", "A\\nB'\"é", "--channel", "5")
    before = extcli("vote", "config", "weekly", "--channel", "5", "-o", "json").json
    add_fault(live, "POST /v1/e/vote_config", "status", status=400, times=1, share=0.8)

    stopped = extcli("vote", "restart", "weekly", "--channel", "5")

    assert (4, False) == (stopped.exit_code, "nothing was changed" in stopped.stderr)
    assert 4 == extcli("vote", "config", "weekly", "--channel", "5").exit_code
    line = next(line for line in stopped.stderr.splitlines() if "vote_config" in line and "extcli api" in line)
    _, _, body, _, *command = shlex.split(line.partition(": ")[2])
    assert 0 == extcli(*command[1:], input=body).exit_code
    assert before == extcli("vote", "config", "weekly", "--channel", "5", "-o", "json").json


def test_restart_with_an_end_keeps_the_start_of_a_poll(extcli):
    extcli("vote", "define", "weekly", "--prompt", "Which?", "--starts-in", "1h")
    start = definition_of(extcli)["startsAt"]

    restarted = extcli("vote", "restart", "weekly", "--ends-in", "7d", "-o", "table")

    assert "poll weekly has no votes now, and the same definition; closes in 7d\n" == restarted.stderr
    assert (start, "pending") == tuple(definition_of(extcli)[name] for name in ("startsAt", "status"))


def test_a_dry_run_of_restart_prints_all_its_requests(extcli, weekly):
    shown = extcli("vote", "restart", "weekly", "--dry-run", "-o", "jsonl").jsonl

    assert ["POST", "DELETE", "POST"] == [request["method"] for request in shown]
    assert [["1", "1"]] == extcli("vote", "get", "weekly").rows
