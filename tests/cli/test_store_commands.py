"""`extcli state` and `extcli store-config`."""

from __future__ import annotations

import pytest


@pytest.mark.parametrize(
    ("noun", "scope"),
    [
        *(("state", scope) for scope in ("extension", "channel", "viewer", "extension-viewer", "hidden")),
        *(("store-config", scope) for scope in ("extension", "channel")),
        ("state", "extension_viewer"),
    ],
)
def test_every_store_can_be_written_and_read(extcli, file, noun, scope):
    extcli(noun, "set", scope, "@" + file('{"round":4}'), exits=0)
    extcli(noun, "patch", scope, "-", input='{"theme":"dark"}', exits=0)
    extcli(noun, "patch", scope, "round=null", "list=[2]", exits=0)

    assert [["theme", '"dark"'], ["list", "[2]"]] == extcli(noun, "get", scope.replace("_", "-")).rows
    members = [{"key": "theme", "value": "dark"}, {"key": "list", "value": [2]}]
    assert members == extcli(noun, "get", scope, "-o", "jsonl").jsonl


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


def test_control_characters_in_values_are_escaped(extcli):
    extcli("state", "set", "channel", '{"a\\u001b[2J":"\\u001b[31m\\u009b"}')

    for output in ("plain", "table"):
        stdout = extcli("state", "get", "channel", "-o", output).stdout
        assert not {"\x1b", "\x9b"} & set(stdout)


# `extcli state get --user`: the viewer stores of another user


@pytest.mark.parametrize("scope", ["viewer", "extension-viewer"])
def test_a_backend_reads_the_store_of_one_user(extcli, scope):
    extcli("state", "set", scope, "team=red", "--as", "viewer:U7")

    assert [["team", '"red"']] == extcli("state", "get", scope, "--user", "U7", "--channel", "1001").rows
    assert "" == extcli("state", "get", scope, "--user", "U8", "--channel", "1001").stdout
    extcli("state", "get", "viewer", "--user", "U7", exits=4)


# `extcli json-store`


def test_a_stored_object_is_read_by_viewers(extcli):
    extcli("json-store", "set", "score", "best=4", "name=Ann", exits=0)

    assert [["best", "4"], ["name", '"Ann"']] == extcli("json-store", "get", "score").rows
    assert {"best": 4, "name": "Ann"} == extcli("json-store", "get", "score", "-o", "json").json
    extcli("json-store", "get", "absent", exits=4)
