"""`extcli vote`: results, logs, restarts and definitions."""

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

    extcli("vote", "define", "long", "--options", f"{'Noodles ' * 12}rice,Soup")
    extcli("vote", "cast", "long", "0")
    shown = extcli("vote", "get", "long", "-o", "table", env={"COLUMNS": "60"}).stdout
    assert (12, ["100.0%", "0.0%"]) == (shown.count("Noodles"), re.findall(r"[\d.]+%", shown))


def test_since_and_limit_select_a_part_of_the_log(extcli, live):
    start = live.freeze()
    for index in range(4):
        extcli("vote", "cast", "--value", str(index), "--as", f"viewer:U{index}")
        live.advance(1000)

    rows = extcli("vote", "logs", "--since", str(start + 1000), "--limit", "2").rows

    assert ["1", "2"] == [row[2] for row in rows]


# `extcli vote restart`: deletes the votes of a poll, and keeps its definition


def definition_of(extcli, poll: str = "weekly"):
    return extcli("vote", "config", poll, "-o", "json").json


@pytest.fixture
def weekly(extcli):
    """A poll with a definition and one vote."""
    extcli("vote", "define", "weekly", "--prompt", "Which?", "--options", "A,B", "--user-data", '{"n":1}')
    extcli("vote", "cast", "weekly", "--value", "1")


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


# `extcli vote define`, `edit`, `close` and `reopen`


@pytest.mark.parametrize(
    ("words", "options"),
    [(("--options", "Rock, Paper"), ["Rock", "Paper"]), (("--option", "A, b", "--option", "C"), ["A, b", "C"])],
)
def test_a_definition_can_be_written_and_read(extcli, words, options):
    extcli("vote", "define", "lunch", "--prompt", "Which?", *words, "--user-data", '{"hard":true}')

    poll = definition_of(extcli, "lunch")
    assert ("Which?", options, {"hard": True}) == (poll["prompt"], poll["options"], poll["userData"])
    extcli("vote", "config", "nothing", fails=4)


@pytest.mark.parametrize("defined", [False, True], ids=["no definition", "one vote per user"])
def test_a_count_for_a_poll_of_one_vote_per_user_is_an_error(extcli, defined):
    """The service would ignore it."""
    if defined:
        extcli("vote", "define", "lunch", "--options", "A,B")

    extcli("vote", "cast", "lunch", "--value", "1", "--count", "5", fails=2)

    assert "" == extcli("vote", "get", "lunch").stdout
    extcli("vote", "cast", "lunch", "--value", "1", "--count", "1", exits=0)


@pytest.fixture
def lunch(extcli):
    """A poll with a definition and one vote."""
    extcli("vote", "define", "lunch", "--prompt", "Which?", "--options", "A,B", "--user-data", '{"n":1}')
    extcli("vote", "cast", "lunch", "--value", "1")


@pytest.mark.parametrize(
    ("flags", "lost"),
    [
        ((), "prompt, options, userData"),
        (("--ends-in", "90s"), "prompt, options, userData"),
        (("--prompt", "Lunch?"), "options, userData"),
        (("--prompt", "Lunch?", "--options", "A"), "userData"),
    ],
    ids=str,
)
def test_define_refuses_to_drop_fields_of_a_poll(extcli, lunch, flags, lost):
    before = definition_of(extcli, "lunch")

    assert f"delete its {lost}\n" in extcli("vote", "define", "lunch", *flags, fails=2).stderr
    assert before == definition_of(extcli, "lunch")


def test_define_refuses_to_drop_times_limits_and_any_user_data(extcli):
    for number, line in enumerate(
        (
            *("--starts-in 1h", "--ends-in 1h", "--total-votes 5", "--votes-per-option 2", "--distinct-options 2"),
            *("--user-id-voting", "--disabled", "--user-data 0", "--user-data false", "--user-data []"),
        )
    ):
        poll, flags = f"p{number}", line.split()
        extcli("vote", "define", poll, "--prompt", "Which?", *flags, exits=0)
        extcli("vote", "define", poll, "--prompt", "Lunch?", exits=2)
        extcli("vote", "define", poll, "--prompt", "Lunch?", *flags, exits=0)


def test_define_with_replace_drops_fields_that_are_not_given(extcli, lunch):
    assert 0 == extcli("vote", "define", "lunch", "--disabled", "--replace").exit_code

    poll = definition_of(extcli, "lunch")
    assert (True, "", [], None) == (poll["disabled"], poll["prompt"], poll["options"], poll["userData"])


def test_edit_changes_the_given_members_only(extcli, lunch, live):
    end = -(-live.freeze() // 1000) + 90
    before = definition_of(extcli, "lunch")

    for flags, changes in (
        (("--prompt", "Really?", "--ends-in", "90s", "--disabled", "--user-id-voting"), {"userIDVoting": True}),
        (("--enabled", "--no-user-id-voting"), {"disabled": False, "userIDVoting": False}),
        (("--user-data", "null"), {"disabled": False, "userIDVoting": False, "userData": None}),
    ):
        extcli("vote", "edit", "lunch", *flags, exits=0)
        assert before | {"prompt": "Really?", "endsAt": end, "disabled": True} | changes == definition_of(
            extcli, "lunch"
        )
    for option in ("--user-data", "--options"):
        extcli("vote", "edit", "lunch", option, "", exits=2)
    assert [["1", "1"]] == extcli("vote", "get", "lunch").rows


@pytest.mark.parametrize("command", ["edit typo --disabled", "close typo", "reopen typo"])
def test_a_poll_that_does_not_exist_cannot_be_changed(extcli, command):
    extcli("vote", *command.split(), exits=4)


@pytest.mark.parametrize("made", ["cast lunch --value 1", "define lunch --options A,B --starts-in 1h"])
def test_a_poll_without_a_definition_or_before_its_start_can_be_closed(extcli, made: str):
    extcli("vote", *made.split())

    extcli("vote", "close", "lunch", exits=0)

    assert "expired" == definition_of(extcli, "lunch")["status"]


def test_closing_a_closed_poll_keeps_its_end(extcli, lunch, live):
    extcli("vote", "close", "lunch")
    before = definition_of(extcli, "lunch")
    live.advance(5_000)

    extcli("vote", "close", "lunch", exits=0)

    assert before == definition_of(extcli, "lunch")


@pytest.mark.parametrize("ended", ["close lunch", "edit lunch --disabled", "edit lunch --starts-in 1h"])
@pytest.mark.parametrize("options", [(), ("--ends-in", "90s")])
def test_a_reopened_poll_accepts_votes(extcli, lunch, live, ended, options):
    now = live.freeze()
    extcli("vote", *ended.split())
    extcli("vote", "cast", "lunch", "--value", "0", exits=4)

    extcli("vote", "reopen", "lunch", *options, exits=0)

    assert [["0", "1"]] == extcli("vote", "cast", "lunch", "--value", "0").rows
    end = -(-now // 1000) + 90 if options else 0
    assert (end, "Which?") == tuple(definition_of(extcli, "lunch")[name] for name in ("endsAt", "prompt"))


def test_define_writes_only_over_the_definition_it_has_read(extcli, live):
    shown = extcli("vote", "define", "lunch", "--prompt", "Which?", "--dry-run", "-o", "json").json
    assert {} == shown["body"]["expected"]
    extcli("vote", "define", "lunch", "--prompt", "Which?")
    read = definition_of(extcli, "lunch")
    shown = extcli("vote", "define", "lunch", "--prompt", "Lunch?", "--dry-run", "-o", "json").json
    assert read == shown["body"]["expected"]

    add_fault(live, "POST /v1/e/vote_config", "status", status=409, times=1)
    assert 0 == extcli("vote", "define", "lunch", "--prompt", "Lunch?").exit_code

    assert "Lunch?" == definition_of(extcli, "lunch")["prompt"]
