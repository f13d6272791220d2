"""`extcli link token`, `list` and `end`: the links that `pin login` stores."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from support.service import live_server
from support.socket_client import request_pin


@pytest.fixture
def login(extcli, live):
    """Log in to a channel."""

    def login(channel: str = "777") -> None:
        assert 0 == extcli("pin", "login", input=request_pin(live, channel)).exit_code

    return login


@pytest.fixture
def stored(tmp_path: Path):
    """Read the links in the file."""
    return lambda: json.loads((tmp_path / "state" / "links.json").read_text())["links"]


def test_refresh_prints_an_access_token_for_the_channel(extcli, login):
    login()

    token = extcli("link", "token").stdout.strip()

    info = extcli("user", "info", "-o", "json", env={"EXTCLI_TOKEN": token}).json
    assert ("broadcaster", "777") == (info["role"], info["channel_id"])
    assert extcli("link", "token", "--header").stdout.startswith("Authorization: my-extension eyJ")


def test_refresh_replaces_the_stored_refresh_token(extcli, login, live, stored):
    live.freeze()
    login()
    (before,) = stored()
    live.advance(2000)

    extcli("link", "token")

    (after,) = stored()
    assert before["refresh"] != after["refresh"]
    assert (before["since"], before["until"] + 2000) == (after["since"], after["until"])


def test_with_links_to_several_channels_one_must_be_chosen(extcli, login):
    login("1")
    login("2")

    assert "1, 2" in extcli("link", "token", fails=2).stderr
    token = extcli("link", "token", "--channel", "2").stdout.strip()
    assert "2" == extcli("user", "info", "-o", "json", env={"EXTCLI_TOKEN": token}).json["channel_id"]
    extcli("link", "token", "--channel", "3", fails=2)


@pytest.mark.parametrize(("verb", "code"), [("token", 4), ("end", 0)])
def test_a_link_revoked_at_the_service_is_deleted(extcli, login, broadcaster, verb, code):
    login()
    broadcaster.delete("pin").raise_for_status()

    assert "" == extcli("link", verb, exits=code).stdout
    assert "" == extcli("link", "list").stdout


def test_a_link_is_kept_while_the_service_is_unreachable(extcli):
    with live_server() as live:
        variables = {"EXTCLI_URL": live.url}
        assert 0 == extcli("pin", "login", input=request_pin(live), env=variables).exit_code

    assert 3 == extcli("link", "token", env=variables).exit_code
    assert 3 == extcli("link", "end", env=variables).exit_code
    assert [live.url] == [row[0] for row in extcli("link", "list", env=variables).rows]


def test_list_shows_the_links_of_all_services_without_tokens(extcli, login, stored, live):
    login("1")
    login("2")

    for form in ("table", "plain", "json", "jsonl"):
        assert "eyJ" not in extcli("link", "list", "-v", "-o", form, "--url", "http://127.0.0.1:1", exits=0).stdout
    members = ("client_id", "channel_id", "since", "until")
    rows = [[live.url, *(str(each[name]) for name in members)] for each in stored()]
    assert rows == extcli("link", "list").rows
    facts = {"service", *members}
    assert [facts, facts] == [set(each) for each in extcli("link", "list", "-o", "json").json]


def test_revoke_ends_the_link_at_the_service_and_deletes_it(extcli, login, live):
    login("1")
    login("2")

    extcli("link", "end", "--channel", "1", exits=0)

    assert ["2"] == [row[2] for row in extcli("link", "list").rows]
    assert ["false\n", "true\n"] == [extcli("pin", "status", "--channel", each).stdout for each in "12"]


def test_reset_deletes_the_links_to_the_service_and_an_undo_restores_them(extcli, login, live, tmp_path):
    login("1")
    login("2")

    for options, links in (
        (("--url", f"{live.url}/_ns/other"), 2),
        (("--keep", "1m"), 2),
        (("--undo",), 2),
        ((), 0),
    ):
        extcli("reset", *options, exits=0)
        assert links == len(extcli("link", "list").rows)
    (tmp_path / "state" / "links.json").write_text("[")
    extcli("reset", exits=0)
