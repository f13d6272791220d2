"""`extcli help TOPIC`, and errors as JSON."""

from __future__ import annotations

import json

import pytest

from extcli.config.settings import SETTINGS
from extcli.errors import ExitCode
from extcli.seeds.schema import reference


def test_every_exit_code_has_a_meaning(extcli):
    assert sorted(ExitCode) == [int(code) for code, _ in extcli("help", "exit-codes").rows]


def test_every_variable_of_a_setting_and_of_serve_is_listed(extcli):
    listed = dict(extcli("help", "env").rows)

    assert {each.variable for each in SETTINGS.values() if each.variable} < set(listed)
    assert "serve --port: Port; 0 takes a free one." == listed["EXTCLI_SERVE_PORT"]
    assert all(listed.values())


def test_the_topic_seed_lists_every_field_and_what_it_accepts(extcli):
    listed = extcli("help", "seed").rows

    assert [list(each) for each in reference()] == listed
    assert ["polls[].votes", "a table from user to a whole number from -99 to 99, or a list of them"] in [
        row[:2] for row in listed
    ]


def test_without_a_topic_the_commands_are_listed(extcli):
    assert "exit codes" in extcli("help").stdout


@pytest.mark.parametrize("format_", [("-o", "json"), ("--output=json",), ("-ojson",)])
@pytest.mark.parametrize("args", [("vote", "get", "--nothing"), ("vote", "nothing"), ("nothing",)])
def test_a_wrong_command_line_is_a_json_error(extcli, format_, args):
    result = extcli(*args, *format_)

    error = json.loads(result.stderr)["error"]
    assert (2, "", 2) == (result.exit_code, result.stdout, error["exit_code"])
    assert "nothing" in error["what"]


def test_the_variable_chooses_json_errors(extcli):
    assert "error" in json.loads(extcli("nothing", env={"EXTCLI_OUTPUT": "json"}).stderr)
    assert extcli("nothing", "-o", "plain", env={"EXTCLI_OUTPUT": "json"}).stderr.startswith("extcli: ")


def test_a_json_error_names_the_request(extcli):
    error = json.loads(extcli("vote", "cast", "--value", "1000", "-o", "json").stderr)["error"]

    assert ["exit_code", "what", "why", "fix", "status", "body", "request_id"] == list(error)
    assert 400 == error["status"]


def test_help_with_the_name_of_a_command_prints_its_help_page(extcli):
    for words in (["vote"], ["vote", "cast"], ["doctor"]):
        assert extcli(*words, "--help").stdout == extcli("help", *words).stdout
    assert "no such command 'vot'. Did you mean 'vote'?" in extcli("help", "vot").stderr
