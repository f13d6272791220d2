"""`extcli vote`."""

from __future__ import annotations

import re
import shlex

import pytest

from support.faults import add_fault


def test_a_table_of_votes_has_a_bar_and_a_share_for_each_option(extcli):
    extcli("vote", "define", "lunch", "--options", "Soup,Noodles,Rice")
    for user, value in (("U1", 0), ("U2", 0), ("U3", 1), ("U4", -7)):
        extcli("vote", "cast", "lunch", "--value", str(value), "--as", f"viewer:{user}")

    rows = extcli("vote", "get", "lunch", "-o", "table").stdout.splitlines()

    shares = {row.split()[1]: (row.count("━"), row.split()[-1]) for row in rows if row.endswith("%")}
    half = shares["Soup"][0]
    assert {"Soup": (half, "50.0%"), "Noodles": (half // 2, "25.0%"), "Rice": (0, "0.0%")}.items() <= shares.items()


def test_a_long_option_is_shown_whole_beside_the_numbers(extcli):
    extcli("vote", "define", "lunch", "--options", f"{'Noodles ' * 12}rice,Soup")
    extcli("vote", "cast", "lunch", "--value", "0", "--as", "viewer:U1")

    shown = extcli("vote", "get", "lunch", "-o", "table", env={"COLUMNS": "60"}).stdout

    assert (12, ["100.0%", "0.0%"]) == (shown.count("Noodles"), re.findall(r"[\d.]+%", shown))


def test_since_and_limit_select_a_part_of_the_log(extcli, live):
    start = live.freeze()
    for index in range(4):
        extcli("vote", "cast", "--value", str(index), "--as", f"viewer:U{index}")
        live.advance(1000)

    rows = extcli("vote", "logs", "--since", str(start + 1000), "--limit", "2").rows

    assert ["1", "2"] == [row[2] for row in rows]


# `extcli vote restart`: deletes the votes of a poll, and keeps its definition


def definition_of(extcli):
    return extcli("vote", "config", "weekly", "-o", "json").json


@pytest.fixture
def weekly(extcli):
    """A poll with a definition and one vote."""
    extcli("vote", "define", "weekly", "--prompt", "Which?", "--options", "A,B", "--user-data", '{"n":1}')
    extcli("vote", "cast", "weekly", "--value", "1")


def test_a_restarted_poll_has_no_votes_and_the_same_definition(extcli, weekly):
    before = definition_of(extcli)

    extcli("vote", "restart", "weekly", exits=0)

    assert before == definition_of(extcli)
    assert 0 == extcli("vote", "get", "weekly", "-o", "json").json["stats"]["count"]
    extcli("vote", "restart", "other", exits=4)


def test_a_poll_that_has_ended_restarts_with_a_new_end(extcli):
    extcli("vote", "define", "weekly", "--prompt", "Which?", "--starts-at", "1", "--ends-in", "2d")
    extcli("vote", "close", "weekly")

    extcli("vote", "restart", "weekly", exits=2)
    extcli("vote", "restart", "weekly", "--ends-in", "7d", exits=0)

    assert ("active", "Which?", 1) == tuple(definition_of(extcli)[name] for name in ("status", "prompt", "startsAt"))


@pytest.mark.parametrize(
    ("call", "fault", "code"),
    [
        ("POST /v1/e/vote_config", {"status": 400}, 4),
        ("POST /v1/e/vote_config", {"status": 503}, 5),
        ("DELETE /v1/e/vote", {"status": 503, "retry_after": 3600}, 5),
    ],
)
def test_a_refused_restart_changes_nothing(extcli, live, weekly, call, fault, code):
    before = definition_of(extcli)
    add_fault(live, call, "status", times=1, **fault)

    extcli("vote", "restart", "weekly", exits=code)

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
    assert (True, 0) == ("--yes" in command, extcli(*command[1:], input=body).exit_code)
    assert before == extcli("vote", "config", "weekly", "--channel", "5", "-o", "json").json


def test_a_dry_run_of_restart_prints_all_its_requests(extcli, weekly):
    shown = extcli("vote", "restart", "weekly", "--dry-run", "-o", "jsonl").jsonl

    assert ["POST", "DELETE", "POST"] == [request["method"] for request in shown]
    assert [["1", "1"]] == extcli("vote", "get", "weekly").rows
