"""`extcli link token`, `list` and `end`: the links that `pin login` stores."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from support.service import live_server
from support.socket_client import request_pin

YEAR = 365 * 86_400_000


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


def test_refresh_prints_a_header_for_curl(extcli, login):
    login()

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


def test_without_a_link_the_error_says_how_to_link(extcli):
    for verb in ("refresh", "revoke"):
        result = extcli("token", verb, fails=2)

        assert "extcli pin login" in result.stderr


def test_with_links_to_several_channels_one_must_be_chosen(extcli, login):
    login("1")
    login("2")

    result = extcli("link", "token", fails=2)
    assert "1, 2" in result.stderr
    assert "choose one with --channel" in result.stderr

    token = extcli("link", "token", "--channel", "2").stdout.strip()
    assert "2" == extcli("user", "info", "-o", "json", env={"EXTCLI_TOKEN": token}).json["channel_id"]
    assert "no link is stored" in extcli("link", "token", "--channel", "3").stderr


def test_a_link_revoked_at_the_service_is_deleted_and_reported(extcli, login, broadcaster):
    login()
    broadcaster.delete("pin").raise_for_status()

    result = extcli("link", "token", fails=4)

    assert "the stored link to channel 777 is no longer valid, and was deleted" in result.stderr
    assert "link again with `extcli pin login`" in result.stderr
    assert "" == extcli("link", "list").stdout


def test_a_link_expires_a_year_after_its_last_use(extcli, login, live):
    login()

    live.advance(YEAR - 2000)
    assert 0 == extcli("link", "token").exit_code
    live.advance(YEAR)
    assert 4 == extcli("link", "token").exit_code


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
    entries = stored()

    for form in ("table", "plain", "json", "jsonl"):
        result = extcli("link", "list", "-v", "-o", form, "--url", "http://127.0.0.1:1")
        assert (0, "") == (result.exit_code, result.stderr)
        assert "eyJ" not in result.stdout
    rows = extcli("link", "list").rows
    assert [
        [live.url, "my-extension", each["channel_id"], str(each["since"]), str(each["until"])] for each in entries
    ] == rows
    facts = {"service", "client_id", "channel_id", "since", "until"}
    assert [facts, facts] == [set(each) for each in extcli("link", "list", "-o", "json").json]


def test_list_without_links_is_empty(extcli, tmp_path):
    assert ("", "no links are stored\n", []) == (
        extcli("link", "list").stdout,
        extcli("link", "list", "-o", "table").stdout,
        extcli("link", "list", "-o", "json").json,
    )
    assert not (tmp_path / "state").exists()


def test_revoke_ends_the_link_at_the_service_and_deletes_it(extcli, login, live):
    login("1")
    login("2")

    result = extcli("link", "end", "--channel", "1")

    assert (0, "") == (result.exit_code, result.stdout)
    assert f"revoked and deleted the link to channel 1 of my-extension at {live.url}" in result.stderr
    assert ["2"] == [row[2] for row in extcli("link", "list").rows]
    assert "false\n" == extcli("pin", "status", "--channel", "1").stdout
    assert "true\n" == extcli("pin", "status", "--channel", "2").stdout


def test_revoking_an_invalid_link_deletes_it(extcli, login, broadcaster):
    login()
    broadcaster.delete("pin").raise_for_status()

    result = extcli("link", "end")

    assert (0, "") == (result.exit_code, result.stdout)
    assert "was no longer valid, and was deleted" in result.stderr
    assert "" == extcli("link", "list").stdout


def test_pin_revoke_deletes_the_stored_link(extcli, login):
    login("1")
    login("2")

    result = extcli("pin", "revoke", "--channel", "1")

    assert (0, "deleted the stored link to channel 1\n") == (result.exit_code, result.stderr)
    assert ["2"] == [row[2] for row in extcli("link", "list").rows]


def test_pin_revoke_with_a_token_deletes_the_link_to_its_channel(extcli, login):
    login("1")
    login("2")
    token = extcli("token", "sandbox", "--role", "broadcaster", "--channel", "2").stdout.strip()

    extcli("pin", "revoke", env={"EXTCLI_TOKEN": token})

    assert ["1"] == [row[2] for row in extcli("link", "list").rows]


def test_reset_deletes_the_links_to_the_service(extcli, login, live):
    login("1")
    login("2")

    result = extcli("reset", "--url", f"{live.url}/_ns/other")
    assert (0, "") == (result.exit_code, result.stderr)
    assert 2 == len(extcli("link", "list").rows)

    result = extcli("reset")
    assert (0, 2) == (result.exit_code, result.stderr.count("deleted the stored link to channel"))
    assert "" == extcli("link", "list").stdout


def test_an_undone_reset_brings_the_links_back(extcli, login):
    login("1")

    assert 0 == extcli("reset", "--keep", "1m").exit_code
    assert 0 == extcli("reset", "--undo").exit_code

    assert ["1"] == [row[2] for row in extcli("link", "list").rows]
    assert 0 == extcli("link", "token").exit_code


def test_reset_ignores_a_damaged_links_file(extcli, tmp_path):
    (tmp_path / "state").mkdir()
    (tmp_path / "state" / "links.json").write_text("[")

    assert (0, "") == (extcli("reset").exit_code, extcli("reset").stderr)


def test_verbose_output_masks_both_tokens(extcli, login, stored):
    login()

    for verb in ("refresh", "revoke"):
        (link,) = stored()
        result = extcli("token", verb, "-v", exits=0)
        assert '"refresh":"***"' in result.stderr
        assert "eyJ" not in result.stderr
        assert link["refresh"] not in result.stdout


def test_a_login_and_user_info_show_how_to_act_with_the_link(extcli):
    pin = extcli("pin", "request").stdout
    how = "EXTCLI_TOKEN=$(extcli link token) extcli user info"

    assert how in extcli("pin", "login", "-o", "table", input=pin).stderr
    assert how in extcli("user", "info", "--help").stdout


def test_user_info_reports_the_identity_and_its_source(extcli):
    default = extcli("user", "info", "-o", "table").stderr
    token = extcli("token", "sandbox").stdout.strip()

    assert "acted as viewer:U1, with a sandbox token\n" == default
    assert "acted with the given token\n" == extcli("user", "info", "-o", "table", env={"EXTCLI_TOKEN": token}).stderr


def test_earlier_spellings_of_commands_of_links_work_and_are_in_no_list(extcli, login):
    login()

    assert extcli("link", "list").rows == extcli("token", "list").rows != []
    assert extcli("token", "refresh").stdout.startswith("eyJ")
    assert "deleted the link" in extcli("token", "revoke").stderr
    assert "revoke" not in extcli("token", "--help").stdout
