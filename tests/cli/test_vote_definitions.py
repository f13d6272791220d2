"""`extcli vote define`, `edit`, `close` and `reopen`."""

from __future__ import annotations

import pytest

from support.faults import add_fault


def definition_of(extcli, poll="lunch"):
    return extcli("vote", "config", poll, "-o", "json").json


@pytest.mark.parametrize(
    ("words", "options"),
    [(("--options", "Rock, Paper"), ["Rock", "Paper"]), (("--option", "A, b", "--option", "C"), ["A, b", "C"])],
)
def test_a_definition_can_be_written_and_read(extcli, words, options):
    extcli("vote", "define", "lunch", "--prompt", "Which?", *words, "--user-data", '{"hard":true}')

    poll = definition_of(extcli)
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
    before = definition_of(extcli)

    assert f"delete its {lost}\n" in extcli("vote", "define", "lunch", *flags, fails=2).stderr
    assert before == definition_of(extcli)


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

    poll = definition_of(extcli)
    assert (True, "", [], None) == (poll["disabled"], poll["prompt"], poll["options"], poll["userData"])


def test_edit_changes_the_given_members_only(extcli, lunch, live):
    end = -(-live.freeze() // 1000) + 90
    before = definition_of(extcli)

    for flags, changes in (
        (("--prompt", "Really?", "--ends-in", "90s", "--disabled", "--user-id-voting"), {"userIDVoting": True}),
        (("--enabled", "--no-user-id-voting"), {"disabled": False, "userIDVoting": False}),
        (("--user-data", "null"), {"disabled": False, "userIDVoting": False, "userData": None}),
    ):
        extcli("vote", "edit", "lunch", *flags, exits=0)
        assert before | {"prompt": "Really?", "endsAt": end, "disabled": True} | changes == definition_of(extcli)
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

    assert "expired" == definition_of(extcli)["status"]


def test_closing_a_closed_poll_keeps_its_end(extcli, lunch, live):
    extcli("vote", "close", "lunch")
    before = definition_of(extcli)
    live.advance(5_000)

    extcli("vote", "close", "lunch", exits=0)

    assert before == definition_of(extcli)


@pytest.mark.parametrize("ended", ["close lunch", "edit lunch --disabled", "edit lunch --starts-in 1h"])
@pytest.mark.parametrize("options", [(), ("--ends-in", "90s")])
def test_a_reopened_poll_accepts_votes(extcli, lunch, live, ended, options):
    now = live.freeze()
    extcli("vote", *ended.split())
    extcli("vote", "cast", "lunch", "--value", "0", exits=4)

    extcli("vote", "reopen", "lunch", *options, exits=0)

    assert [["0", "1"]] == extcli("vote", "cast", "lunch", "--value", "0").rows
    end = -(-now // 1000) + 90 if options else 0
    assert (end, "Which?") == tuple(definition_of(extcli)[name] for name in ("endsAt", "prompt"))


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
