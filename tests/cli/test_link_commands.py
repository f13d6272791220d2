"""`extcli link`, and the file with the links: private, always complete, and safe with several processes."""

from __future__ import annotations

import json
import os
import re
import stat
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from extcli.config.link_store import Link, LinkStore
from support.program import PROGRAM
from support.service import live_server
from support.socket_client import request_pin


@pytest.fixture
def login(extcli, live):
    """Log in to a channel."""

    words = ("pin", "login")
    return lambda channel="777", **given: extcli(*words, input=request_pin(live, channel), exits=0, **given)


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


def test_end_ends_the_link_at_the_service_and_deletes_it(extcli, login, live):
    login("1")
    login("2")

    extcli("link", "end", "--channel", "1", exits=0)

    assert ["2"] == [row[2] for row in extcli("link", "list").rows]
    assert ["false\n", "true\n"] == [extcli("pin", "status", "--channel", each).stdout for each in "12"]
    assert "linked\n" == extcli("pin", "status", "--channel", "2", "-o", "table").stdout


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


# The links file


@pytest.fixture
def state(tmp_path: Path) -> Path:
    """The directory in which `extcli` and `shell` store links."""
    return tmp_path / "state"


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_the_file_and_its_directory_are_private(extcli, login, live, state):
    before = os.umask(0)
    try:
        login()
    finally:
        os.umask(before)
    assert 0o700 == mode(state)
    assert {0o600} == {mode(path) for path in state.iterdir()}
    (state / "links.json").chmod(0o644)
    state.chmod(0o755)
    live.advance(1000)

    extcli("link", "token")

    assert (0o755, 0o600) == (mode(state), mode(state / "links.json"))


def test_the_refresh_token_is_stored_and_the_access_token_is_not(extcli, login, state):
    login()
    access = extcli("link", "token").stdout.strip()

    text = (state / "links.json").read_text()

    assert 1 == len(re.findall(r"eyJ[\w-]+\.eyJ[\w-]+\.", text))
    assert access not in text
    assert not [path for path in state.rglob("*") if access in path.read_text()]


def test_one_link_is_stored_per_service_client_id_and_channel(extcli, live, state):
    for channel, client_id in (("1", "my-extension"), ("2", "my-extension"), ("1", "other"), ("1", "my-extension")):
        pin = request_pin(live, channel, client_id)
        assert 0 == extcli("pin", "login", "--client-id", client_id, input=pin).exit_code

    links = json.loads((state / "links.json").read_text())["links"]
    assert [(live.url, "my-extension", "1"), (live.url, "my-extension", "2"), (live.url, "other", "1")] == [
        (link["service"], link["client_id"], link["channel_id"]) for link in links
    ]


def test_the_default_directory_is_the_platform_s(login, tmp_path):
    login(env={"EXTCLI_STATE_DIR": "", "XDG_STATE_HOME": str(tmp_path / "xdg")})

    assert sys.platform != "linux" or (tmp_path / "xdg" / "extcli" / "links.json").exists()


def test_links_added_at_once_are_all_kept(tmp_path):
    links = [Link("http://h", "ws://h", "app", str(number), "r", since=1) for number in range(10, 30)]

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda link: LinkStore(tmp_path).add(link), links))

    assert links == LinkStore(tmp_path).all()
    assert ["links.json"] == [path.name for path in tmp_path.iterdir()]


@pytest.mark.parametrize(
    "damage",
    [
        *(b"", b"[]", b"\xff\xfe", b'{"links": [5]}', b'{"links": [{}]}'),
        b'{"links": [{"service": "s", "socket": "w", "client_id": 5, "channel_id": "c", "refresh": "r", "since": 1}]}',
        b"[" * 100_000,
    ],
)
def test_a_damaged_file_is_an_error_and_stays_unchanged(extcli, state, damage):
    state.mkdir()
    (state / "links.json").write_bytes(damage)

    for command in ("link list", "link token", "pin login", "socket repl"):
        assert f"{state / 'links.json'} is damaged" in extcli(*command.split(), input="ABC234", fails=2).stderr
    assert damage == (state / "links.json").read_bytes()


def test_an_unusable_directory_is_an_error_before_the_pin_is_sent(extcli, live, tmp_path):
    (tmp_path / "file").write_text("")
    variables = {"EXTCLI_STATE_DIR": str(tmp_path / "file" / "x")}

    result = extcli("pin", "login", "-v", input=request_pin(live), env=variables, fails=2)

    assert "EXTCLI_STATE_DIR" in result.stderr
    assert "CONNECT" not in result.stderr


def test_a_failed_write_leaves_the_old_file(extcli, login, live, state):
    login()
    before = (state / "links.json").read_bytes()
    live.advance(1000)

    command = ["sh", "-c", 'ulimit -f 0; exec "$0" link token', PROGRAM]
    full = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)

    assert (2, "") == (full.returncode, full.stdout), full.stderr
    assert before == (state / "links.json").read_bytes()
    assert ["links.json"] == [path.name for path in state.iterdir()]


def test_a_new_token_replaces_only_the_one_it_was_exchanged_for(tmp_path):
    """Meanwhile another process may have replaced or deleted the link."""
    links = LinkStore(tmp_path)
    old, other = (Link("http://h", "ws://h", "app", "1", refresh, since=1) for refresh in ("old", "other"))
    assert "other" not in repr(other)

    links.add(old)
    links.renew(old, "next", 5)
    assert [("next", 1, 5)] == [(link.refresh, link.since, link.until) for link in links.all()]

    links.add(other)
    links.renew(old, "late", 6)
    links.delete(old)
    assert [other] == links.all()

    links.delete(other)
    links.renew(other, "late", 6)
    assert [] == links.all()


def test_a_refresh_token_is_sent_only_to_the_socket_that_issued_it(extcli, login, live):
    login()

    elsewhere = f"{live.url.replace('http', 'ws', 1)}/0.2.0/my-extension"
    result = extcli("link", "token", "-v", env={"EXTCLI_WS_URL": elsewhere}, exits=2)

    assert "CONNECT" not in result.stderr
