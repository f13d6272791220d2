"""`extcli help TOPIC`, and errors as JSON."""

from __future__ import annotations

from extcli.app import NOUNS
from extcli.config.settings import SETTINGS
from extcli.errors import ExitCode


def test_every_exit_code_has_a_meaning(extcli):
    assert sorted(ExitCode) == [int(code) for code, _ in extcli("help", "exit-codes").rows]


def test_every_variable_of_a_setting_and_of_serve_is_listed(extcli):
    listed = dict(extcli("help", "env").rows)

    assert {each.variable for each in SETTINGS.values() if each.variable} < set(listed)
    assert "serve --port: Port; 0 takes a free one." == listed["EXTCLI_SERVE_PORT"]
    assert all(listed.values())


def test_the_help_is_one_screen_with_every_noun(extcli):
    screen = extcli("--help", env={"COLUMNS": "80"}).stdout

    assert len(screen.splitlines()) <= 24
    assert set(NOUNS) <= set(screen.split())


def test_commands_of_other_programs_are_understood(live, extcli):
    assert "U7" == extcli("--as", "viewer:U7", "whoami", "-o", "json").json["opaque_user_id"]
    assert extcli("--version").stdout == extcli("version").stdout

    assert 1 == extcli("vote", "cast", "lunch", "3", "-o", "json").json["stats"]["count"]
    assert -3 == extcli("vote", "cast", "lunch", "-3", "-o", "json").json["vote"]
    extcli("vote", "cast", "lunch", "3", "--value", "3", fails=2)
    assert extcli("vote", "list", "-o", "json").json == extcli("vote", "ls", "-o", "json").json
    extcli("vote", "delete", "lunch", exits=0)
    assert 0 == extcli("vote", "get", "lunch", "-o", "json").json["stats"]["count"]


def test_help_with_the_name_of_a_command_prints_its_help_page(extcli):
    for words in (["vote"], ["vote", "cast"], ["doctor"]):
        assert extcli(*words, "--help").stdout == extcli("help", *words).stdout
    extcli("help", "vot", exits=2)
