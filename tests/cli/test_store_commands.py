"""`extcli state` and `extcli store-config`."""

from __future__ import annotations

import pytest


@pytest.mark.parametrize("scope", ["extension", "channel", "viewer", "extension-viewer", "hidden"])
def test_every_state_can_be_written_and_read(extcli, scope):
    assert 0 == extcli("state", "set", scope, '{"round":4}').exit_code
    assert 0 == extcli("state", "patch", scope, '{"theme":"dark"}').exit_code

    assert [["round", "4"], ["theme", '"dark"']] == extcli("state", "get", scope).rows


@pytest.mark.parametrize("scope", ["extension", "channel"])
def test_every_config_can_be_written_and_read(extcli, scope):
    assert 0 == extcli("store-config", "set", scope, '{"round":4}').exit_code
    assert 0 == extcli("store-config", "patch", scope, "round=null", "theme=dark").exit_code

    assert [["theme", '"dark"']] == extcli("store-config", "get", scope).rows


def test_values_of_pairs_are_text_unless_they_are_json(extcli):
    extcli("state", "set", "channel", "n=4", "on=true", "text=dark", 'quoted="4"', "list=[1,2]", "empty=")

    assert {
        "n": 4,
        "on": True,
        "text": "dark",
        "quoted": "4",
        "list": [1, 2],
        "empty": "",
    } == extcli("state", "get", "channel", "-o", "json").json


def test_a_document_can_come_from_a_file_or_standard_input(extcli, tmp_path):
    (tmp_path / "state.json").write_text('{"a":1}')

    extcli("state", "set", "channel", f"@{tmp_path / 'state.json'}")
    extcli("state", "patch", "channel", "-", input='{"b":2}')

    assert {"a": 1, "b": 2} == extcli("state", "get", "channel", "-o", "json").json


def test_an_admin_reads_and_patches_many_users(extcli):
    """Ruling S1."""
    extcli("state", "patch", "extension-viewer", '{"11":{"xp":1},"12":{"xp":2}}', "--as", "admin")

    assert {"11": {"xp": 1}, "12": {"xp": 2}} == extcli(
        "state", "get", "extension-viewer", "--users", "11,12,13", "-o", "json"
    ).json


def test_all_reads_every_store(extcli):
    extcli("state", "set", "channel", "round=4")
    extcli("store-config", "set", "channel", "theme=dark")

    state = extcli("state", "all", "-o", "json").json
    config = extcli("store-config", "all", "-o", "json").json

    assert {"extension": {}, "channel": {"round": 4}, "viewer": {}, "extension_viewer": {}} == state
    assert {"extension": {}, "channel": {"theme": "dark"}} == config


def test_jsonl_prints_one_member_per_line(extcli):
    extcli("state", "set", "channel", "a=1", "b=[2]")

    assert [{"key": "a", "value": 1}, {"key": "b", "value": [2]}] == extcli(
        "state", "get", "channel", "-o", "jsonl"
    ).jsonl


@pytest.mark.parametrize("scope", ["extension-viewer", "extension_viewer"])
def test_a_scope_can_be_spelled_with_an_underscore(extcli, scope):
    assert 0 == extcli("state", "set", scope, "round=4").exit_code

    assert [["round", "4"]] == extcli("state", "get", "extension_viewer").rows
    assert [["round", "4"]] == extcli("state", "get", "extension-viewer").rows


def test_control_characters_in_values_are_escaped(extcli):
    extcli("state", "set", "channel", '{"a\\u001b[2J":"\\u001b[31m\\u009b"}')

    for output in ("plain", "table"):
        stdout = extcli("state", "get", "channel", "-o", output).stdout
        assert not {"\x1b", "\x9b"} & set(stdout)


@pytest.mark.parametrize(
    ("command", "hint"),
    [
        (("get", "viewer", "--user", "U7"), "  add --channel ID"),
        (("set", "channel", "a=1"), "  nothing was changed; add --channel ID"),
    ],
    ids=["get", "set"],
)
def test_a_missing_channel_is_refused_with_a_hint(extcli, command, hint):
    result = extcli("state", *command, "--as", "backend", exits=4)

    assert "Invalid channel" in result.stderr
    assert hint == result.stderr.splitlines()[2]
    assert 0 == extcli("state", *command, "--as", "backend", "--channel", "1001").exit_code


# `extcli state get --user`: the viewer stores of another user


@pytest.mark.parametrize("scope", ["viewer", "extension-viewer"])
def test_a_backend_reads_the_store_of_one_user(extcli, scope):
    extcli("state", "set", scope, "team=red", "--as", "viewer:U7")

    result = extcli("state", "get", scope, "--user", "U7", "--channel", "1001")

    assert [["team", '"red"']] == result.rows
    assert "" == extcli("state", "get", scope, "--user", "U8", "--channel", "1001").stdout


def test_a_store_of_a_viewer_needs_a_channel(extcli):
    result = extcli("state", "get", "viewer", "--user", "U7", exits=4)

    assert "channel" in result.stderr


# `extcli json-store`


def test_a_stored_object_is_read_by_viewers(extcli):
    assert 0 == extcli("json-store", "set", "score", "best=4", "name=Ann").exit_code

    assert [["best", "4"], ["name", '"Ann"']] == extcli("json-store", "get", "score").rows
    assert {"best": 4, "name": "Ann"} == extcli("json-store", "get", "score", "-o", "json").json


def test_an_absent_json_store_exits_4(extcli):
    assert "nothing is stored under absent" in extcli("json-store", "get", "absent", exits=4).stderr
