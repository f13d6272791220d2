"""`extcli state get --user`: the viewer stores of another user."""

from __future__ import annotations

import pytest


@pytest.mark.parametrize("scope", ["viewer", "extension-viewer"])
def test_a_backend_reads_the_store_of_one_user(extcli, scope):
    extcli("state", "set", scope, "team=red", "--as", "viewer:U7")

    result = extcli("state", "get", scope, "--user", "U7", "--channel", "1001")

    assert [["team", '"red"']] == result.rows
    assert "" == extcli("state", "get", scope, "--user", "U8", "--channel", "1001").stdout


def test_a_store_of_a_viewer_needs_a_channel(extcli):
    result = extcli("state", "get", "viewer", "--user", "U7", exits=4)

    assert "channel" in result.stderr


@pytest.mark.parametrize("option", ["--user", "--users"])
def test_a_store_without_users_is_a_usage_error(extcli, option):
    result = extcli("state", "get", "channel", option, "U7", exits=2)

    assert "the store channel has no users" in result.stderr


def test_user_and_users_exclude_each_other(extcli):
    assert 2 == extcli("state", "get", "viewer", "--user", "1", "--users", "1,2").exit_code
