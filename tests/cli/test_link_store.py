"""The links file: private, always complete, and safe with several processes."""

from __future__ import annotations

import json
import os
import re
import resource
import stat
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from extcli.config.link_store import Link, LinkStore
from support.socket_client import request_pin


def log_in(extcli, live, channel: str = "777", **settings) -> None:
    assert 0 == extcli("pin", "login", input=request_pin(live, channel), **settings).exit_code


@pytest.fixture
def state(tmp_path: Path) -> Path:
    """The directory in which `extcli` and `shell` store links."""
    return tmp_path / "state"


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_the_file_and_its_directory_are_private(extcli, live, state):
    before = os.umask(0)
    try:
        log_in(extcli, live)
    finally:
        os.umask(before)
    assert 0o700 == mode(state)
    assert {0o600} == {mode(path) for path in state.iterdir()}
    (state / "links.json").chmod(0o644)
    state.chmod(0o755)
    live.advance(1000)

    extcli("link", "token")

    assert (0o755, 0o600) == (mode(state), mode(state / "links.json"))


def test_the_refresh_token_is_stored_and_the_access_token_is_not(extcli, live, state):
    log_in(extcli, live)
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


def test_the_default_directory_is_the_platform_s(extcli, live, tmp_path):
    log_in(extcli, live, env={"EXTCLI_STATE_DIR": "", "XDG_STATE_HOME": str(tmp_path / "xdg")})

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


def test_a_failed_write_leaves_the_old_file(extcli, shell, live, state):
    log_in(extcli, live)
    before = (state / "links.json").read_bytes()
    live.advance(1000)

    full = shell("link", "token", preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (10, 10)))
    stdout, stderr = full.communicate(timeout=60)

    assert (2, b"") == (full.returncode, stdout), stderr
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


def test_a_refresh_token_is_sent_only_to_the_socket_that_issued_it(extcli, live):
    log_in(extcli, live)

    elsewhere = f"{live.url.replace('http', 'ws', 1)}/0.2.0/my-extension"
    result = extcli("link", "token", "-v", env={"EXTCLI_WS_URL": elsewhere}, exits=2)

    assert "CONNECT" not in result.stderr
