"""`extcli vote`."""

from __future__ import annotations

import shlex

import pytest

from support.faults import add_fault


def test_casting_a_vote_prints_the_result(extcli):
    extcli("vote", "cast", "--value", "3", "--as", "viewer:U2")

    result = extcli("vote", "cast", "--value", "3")

    assert (0, "3\t2\n", "") == (result.exit_code, result.stdout, result.stderr)


def test_the_default_poll_is_named_default(extcli):
    extcli("vote", "cast", "--value", "1")
    extcli("vote", "cast", "lunch", "--value", "2")

    assert [["1", "1"]] == extcli("vote", "get", "default").rows
    assert [["2", "1"]] == extcli("vote", "get", "lunch").rows


def test_json_output_is_the_response_of_the_service(extcli, viewer):
    extcli("vote", "cast", "--value", "3", "--channel", "777", "--as", "viewer:5551")

    result = extcli("vote", "get", "-o", "json", "--channel", "777", "--as", "viewer:5551")

    assert viewer("5551").get("vote").text + "\n" == result.stdout


def test_a_table_shows_bars_shares_and_statistics(extcli):
    for user, value in (("U1", 0), ("U2", 0), ("U3", 2), ("U4", -7)):
        extcli("vote", "cast", "--value", str(value), "--as", f"viewer:{user}")

    lines = extcli("vote", "get", "-o", "table").stdout.splitlines()

    assert ["value", "votes", "share"] == lines[0].split()
    assert ["-7", "1", "█" * 7, "25.0%"] == lines[1].split()
    assert ["0", "2", "█" * 14, "50.0%"] == lines[2].split()
    assert ["2", "1", "█" * 7, "25.0%"] == lines[3].split()
    assert "4 votes, mean -1.25, stddev 3.419, sum -5, 1 outside 0 to 63, yours: 0" == lines[-1]


@pytest.mark.parametrize("command", [("cast", "--value", "-5"), ("get",)], ids=["cast", "get"])
def test_every_value_with_votes_is_shown(extcli, command):
    """The statistics count the values 0 to 63 only."""
    verb, *options = command
    extcli("vote", "cast", "neg", "--value", "-5")
    extcli("vote", "cast", "neg", "--value", "64", "--as", "viewer:U2")

    result = extcli("vote", verb, "neg", *options)

    assert (0, "-5\t1\n64\t1\n", "") == (result.exit_code, result.stdout, result.stderr)


def test_only_votes_of_the_channel_are_shown(extcli):
    extcli("vote", "cast", "neg", "--value", "-5")
    extcli("vote", "cast", "neg", "--value", "-6", "--channel", "777")

    assert "-5\t1\n" == extcli("vote", "get", "neg").stdout
    assert "-6\t1\n" == extcli("vote", "get", "neg", "--channel", "777").stdout
    assert "-6\t1\n-5\t1\n" == extcli("vote", "get", "neg", "--as", "backend").stdout


def test_votes_in_a_log_that_the_caller_may_not_read_are_counted(extcli):
    extcli("vote", "cast", "neg", "--value", "-5")

    result = extcli("vote", "get", "neg", "--as", "viewer:U2")
    lines = extcli("vote", "get", "neg", "--as", "viewer:U2", "-o", "table").stdout.splitlines()

    assert (0, "") == (result.exit_code, result.stdout)
    assert "1 vote is outside 0 to 63: `extcli vote logs neg` lists all\n" == result.stderr
    assert ["other", "1", "█" * 28, "100.0%"] == lines[1].split()


def test_a_table_shows_the_prompt_and_the_options(extcli):
    extcli("vote", "define", "lunch", "--prompt", "Which?", "--options", "Rock,Paper")
    extcli("vote", "cast", "lunch", "--value", "1")

    for args in (("get", "lunch"), ("cast", "lunch", "--value", "1")):
        lines = extcli("vote", *args, "-o", "table").stdout.splitlines()

        assert ["Which?", ""] == lines[:2]
        assert ["value", "option", "votes", "share"] == lines[2].split()
        assert ["0", "Rock", "0", "0.0%"] == lines[3].split()
        assert ["1", "Paper", "1", "█" * 28, "100.0%"] == lines[4].split()


def test_a_table_of_many_options_shows_only_those_with_votes(extcli):
    extcli("vote", "define", "many", "--options", ",".join(f"o{index}" for index in range(64)))
    extcli("vote", "cast", "many", "--value", "63")

    lines = extcli("vote", "get", "many", "-o", "table").stdout.splitlines()

    assert [["63", "o63"]] == [line.split()[:2] for line in lines[1:-2]]


@pytest.mark.parametrize(
    ("flags", "state"),
    [
        (("--ends-at", "1900000000"), "closes at 2030-03-17 17:46:40Z"),
        (("--ends-at", "1899999999"), "closed at 2030-03-17 17:46:39Z"),
        (("--starts-at", "1900000001"), "opens at 2030-03-17 17:46:41Z"),
        (("--starts-at", "1899999998"), ""),
        (("--disabled",), "disabled"),
        (("--disabled", "--ends-at", "1899999999"), "disabled, closed at 2030-03-17 17:46:39Z"),
    ],
    ids=str,
)
def test_a_table_shows_whether_the_poll_is_open(extcli, live, flags, state):
    live.set(1_899_999_999_000)
    live.freeze()
    extcli("vote", "define", "lunch", "--prompt", "Which?", *flags)

    lines = extcli("vote", "get", "lunch", "-o", "table").stdout.splitlines()

    assert ["no votes yet", *[state] * bool(state)] == lines[1:]


def test_a_vote_in_a_closed_poll_is_refused_with_a_hint(extcli):
    extcli("vote", "define", "lunch", "--prompt", "Which?", "--disabled")

    result = extcli("vote", "cast", "lunch", "--value", "1", exits=4)

    assert "poll is closed" in result.stderr
    assert "nothing was changed; `extcli vote config lunch` shows its times" in result.stderr


@pytest.mark.parametrize("command", [("vote", "rm", "x"), ("rank", "rm", "x"), ("ns", "rm", "x")], ids=" ".join)
def test_deleting_what_does_not_exist_is_not_reported_as_a_deletion(extcli, command):
    note = {"vote": "there was no poll x", "rank": "there was no ranking x", "ns": "namespace x was not in use"}

    result = extcli(*command, "-o", "table")

    assert (0, f"{note[command[0]]}\n") == (result.exit_code, result.stderr)


def test_control_characters_of_options_cannot_reach_the_terminal(extcli):
    extcli("vote", "define", "lunch", "--prompt", "a\x1b[2J", "--option", "b\u202ec", "--option", "d")

    stdout = extcli("vote", "get", "lunch", "-o", "table").stdout

    assert "a\\x1b[2J" in stdout
    assert "b\\u202ec" in stdout


def test_only_a_table_says_that_a_poll_has_no_votes(extcli):
    assert "no votes yet\n" == extcli("vote", "get", "-o", "table").stdout
    assert "" == extcli("vote", "get").stdout


def test_the_log_is_tab_separated_in_a_pipe(extcli, live):
    now = live.freeze()
    extcli("vote", "cast", "--value", "3")

    assert [["U1", "U1", "3", str(now)]] == extcli("vote", "logs").rows


def test_the_log_as_jsonl_has_one_object_per_line(extcli, live):
    now = live.freeze()
    extcli("vote", "cast", "--value", "3")
    extcli("vote", "cast", "--value", "4", "--as", "viewer:U2")

    assert [
        {"identifier": "U1", "opaque": "U1", "value": 3, "timestamp": now},
        {"identifier": "U2", "opaque": "U2", "value": 4, "timestamp": now},
    ] == extcli("vote", "logs", "-o", "jsonl").jsonl


def test_the_log_as_json_is_the_response_of_the_service(extcli, backend):
    extcli("vote", "cast", "--value", "3")

    assert backend.get("vote_logs").text + "\n" == extcli("vote", "logs", "-o", "json").stdout


def test_since_and_limit_select_a_part_of_the_log(extcli, live):
    start = live.freeze()
    for index in range(4):
        extcli("vote", "cast", "--value", str(index), "--as", f"viewer:U{index}")
        live.advance(1000)

    rows = extcli("vote", "logs", "--since", str(start + 1000), "--limit", "2").rows

    assert ["1", "2"] == [row[2] for row in rows]


def test_an_empty_log_is_empty(extcli):
    assert "" == extcli("vote", "logs").stdout
    assert "" == extcli("vote", "logs", "-o", "jsonl").stdout


def test_a_poll_with_votes_or_a_definition_is_deleted_once(extcli):
    extcli("vote", "cast", "voted", "--value", "1")
    extcli("vote", "define", "defined", "--prompt", "Which?")
    for poll in ("voted", "defined"):
        assert (0, f"poll {poll} is deleted\n") == _deleting(extcli, "vote", "rm", poll)
        assert (0, f"there was no poll {poll}\n") == _deleting(extcli, "vote", "rm", poll)


def test_a_poll_in_no_channel_is_not_called_deleted(extcli):
    assert (0, "there was no poll never in any channel\n") == _deleting(extcli, "vote", "rm", "never", "--all-channels")


def _deleting(extcli, *args):
    result = extcli(*args, "-o", "table")
    return result.exit_code, result.stderr


# `extcli vote config`


def test_a_definition_is_printed_with_its_status(extcli):
    extcli("vote", "define", "lunch", "--prompt", "Which?", "--options", "A,B")

    assert {"prompt": "Which?", "options": ["A", "B"], "status": "active"}.items() <= extcli(
        "vote", "config", "lunch", "-o", "json"
    ).json.items()


# `extcli vote restart`: deletes the votes of a poll, and keeps its definition


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


def test_a_restart_does_not_repeat_a_call_before_its_retry_after(extcli, live, weekly):
    add_fault(live, "DELETE /v1/e/vote", "status", status=503, retry_after=3600, times=1)

    assert 5 == extcli("vote", "restart", "weekly").exit_code


def test_a_restart_that_stops_halfway_prints_how_to_define_the_poll_again(extcli, live):
    extcli("vote", "define", "weekly", "--prompt", "A\\nB'\"é", "--channel", "5")
    before = extcli("vote", "config", "weekly", "--channel", "5", "-o", "json").json
    add_fault(live, "POST /v1/e/vote_config", "status", status=400, times=1, share=0.8)

    stopped = extcli("vote", "restart", "weekly", "--channel", "5")

    assert (4, False) == (stopped.exit_code, "nothing was changed" in stopped.stderr)
    assert 4 == extcli("vote", "config", "weekly", "--channel", "5").exit_code
    line = next(line for line in stopped.stderr.splitlines() if "vote_config" in line and "extcli api" in line)
    _, _, body, _, *command = shlex.split(line.partition(": ")[2])
    assert (True, 0) == ("--yes" in command, extcli(*command[1:], input=body).exit_code)
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
