"""`extcli vote config`."""

from __future__ import annotations


def test_a_definition_is_printed_with_its_status(extcli):
    extcli("vote", "define", "lunch", "--prompt", "Which?", "--options", "A,B")

    assert {"prompt": "Which?", "options": ["A", "B"], "status": "active"}.items() <= extcli(
        "vote", "config", "lunch", "-o", "json"
    ).json.items()


def test_a_viewer_may_read_a_definition(extcli):
    extcli("vote", "define", "lunch", "--prompt", "Which?")

    assert ["prompt", "Which?"] in extcli("vote", "config", "lunch", "--as", "viewer:U7").rows


def test_a_poll_without_definition_exits_4(extcli):
    assert 4 == extcli("vote", "config", "absent").exit_code
