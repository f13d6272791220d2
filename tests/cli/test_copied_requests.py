"""Requests of the journal as commands, lines for curl and tests: running them repeats the request."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

import pytest

from support.journal import journal_of
from support.plugin_runs import run_pytest
from support.service import CHANNEL, LiveServer

USERS = {"viewer": "5551", "broadcaster": CHANNEL, "admin": "9001", "backend": None}


def copied(live: LiveServer, form: str, id: str | int = "latest") -> str:
    query = {"id": id, "as": form, "url": live.url}
    return live._http.get("/_emulator/journal/entry", params=query).raise_for_status().text


def latest(live: LiveServer, **query: str) -> dict[str, Any]:
    """Return the latest entry that a query selects."""
    return dict(journal_of(live, order="newest", limit=1, **query)["entries"][0])


def run(extcli: Any, line: str) -> None:
    """Run a line as a shell does: `printf %s BODY | extcli …`, perhaps with a token."""
    line = "".join(part for part in line.splitlines(keepends=True) if not part.startswith("#"))
    piped, _, command = line.rpartition(" | ")
    body = shlex.split(piped)[2] if piped else None
    environment = {}
    if found := re.match(r'EXTCLI_TOKEN="\$\(extcli (.*?)\)" ', command):
        environment = {"EXTCLI_TOKEN": extcli(*shlex.split(found[1])).stdout.strip()}
        command = command.removeprefix(found[0])
    extcli(*shlex.split(command.removeprefix("extcli ")), input=body, env=environment)


def meaning(entry: dict[str, Any]) -> tuple[Any, ...]:
    """What a request means: endpoint, query with the defaults, body as JSON, and the caller."""
    query = dict(parse_qsl(entry["path"].partition("?")[2]))
    body = entry["request"]["text"]
    caller = entry["caller"]
    known = (caller["client_id"], caller["role"], caller["channel_id"], caller["user_id"]) if caller else None
    return (
        entry["endpoint"],
        {"id": "default", "cursor": "0", "start": "0", **query},
        json.loads(body) if body else None,
        known,
    )


@pytest.mark.parametrize(
    ("role", "method", "path", "body"),
    [
        ("viewer", "POST", "vote?id=lunch", {"value": 2}),
        ("broadcaster", "PATCH", "channel_state", [{"op": "add", "path": "/a", "value": 1}]),
        ("broadcaster", "POST", "json_store?id=a", {"text": "x" * 500}),
        ("admin", "DELETE", "rank?id=global-x", None),
        ("backend", "GET", "broadcast?event=go&data=1", None),
        ("backend", "POST", "codes/mark_from_list", {"users": ["7"], "prizes": [0], "prize_limits": [1]}),
    ],
)
def test_a_request_printed_as_a_command_repeats_the_request(extcli, live: LiveServer, role, method, path, body):
    # A broadcaster owns the channel; a sandbox token of another role without a user names an anonymous one.
    client = live.client(role, user=USERS[role], channel=CHANNEL)
    client.request(method, path, json=body)
    first = latest(live)

    run(extcli, copied(live, "extcli"))

    again = latest(live)
    assert meaning(first) == meaning(again)
    assert again["number"] > first["number"]


TEXTS = ["it's", 'say "hi"', "$HOME `id` $(id)", "a\\b", "día ☀", "-x", "; #1\n2", " "]


@pytest.mark.parametrize("text", [each for each in TEXTS if each.strip() and each.isprintable()])
def test_no_text_of_a_request_is_read_by_the_shell(extcli, live: LiveServer, text: str):
    viewer = live.client("viewer", user=None, channel=CHANNEL, opaque=f"A{text}")
    viewer.post("rank", params={"id": "r"}, json={"key": text}).raise_for_status()
    first = latest(live)

    run(extcli, copied(live, "extcli"))

    again = latest(live, path="rank")
    assert meaning(first) == meaning(again)
    assert first["caller"]["opaque_id"] == again["caller"]["opaque_id"]


def test_a_curl_line_repeats_the_request(live: LiveServer, in_a_shell, viewer):
    viewer("5551").post("rank", params={"id": "it's; 1"}, json={"key": "$HOME `id` 'x'"})
    first = latest(live)
    line = copied(live, "curl")

    printed = in_a_shell(line)
    again = latest(live)
    assert "accepted" in printed
    assert again["number"] > first["number"]
    assert meaning(first) == meaning(again)
    assert "eyJ" not in line


@pytest.mark.long
def test_a_copied_test_passes(live: LiveServer, viewer, tmp_path: Path):
    viewer("5551").post("vote?id=rps", json={"value": 2})
    vote = copied(live, "pytest")
    viewer("5551").get("vote_logs")

    done = run_pytest(tmp_path, files={"test_vote.py": vote, "test_refusal.py": copied(live, "pytest")})

    assert "caller.request('POST', 'vote', {'value': 2}, id='rps')" in vote
    assert "2 passed" in done.output


def test_a_frame_printed_as_a_command_repeats_the_frame(extcli, live: LiveServer, game):
    game.request("set", "state", {"state_id": "channel", "state": {"round": 4}})
    entry = latest(live, kind="frame")

    line = copied(live, "extcli", entry["number"])

    assert "extcli socket send set state --data" in line
    run(extcli, line)
    assert meaning(entry) == meaning(latest(live, kind="frame")) or entry["path"] == ""


def test_an_id_that_begins_with_a_dash_becomes_no_option(extcli, live: LiveServer, viewer):
    viewer("5551").get("vote", params={"id": "--token-file=/etc/passwd"})
    assert "extcli api GET 'vote?id=" in copied(live, "extcli")
    viewer("5551").post("vote", params={"id": "-p"}, json={"value": 2})
    assert "extcli api POST 'vote?id=" in copied(live, "extcli")
    for form in ("curl", "extcli", "pytest"):
        assert copied(live, form) == extcli("logs", "show", "latest", "--copy-as", form).stdout


def test_what_is_not_copied_is_named(live: LiveServer, backend):
    backend.put("codes", json={"codes": [["A-1"]], "names": ["Hat"]})
    assert "# replace [hidden] with the secret" in copied(live, "extcli")
    live._http.get("/v1/e/user_info")
    assert "# the recorded request had no valid token, so this text sends no token" in copied(live, "curl")
    assert "--no-auth" in copied(live, "extcli")


def test_the_curl_line_of_a_dry_run_has_the_effect_of_its_command(extcli, in_a_shell):
    document = {"texts": TEXTS}

    in_a_shell(extcli("state", "set", "channel", json.dumps(document), "--dry-run=curl", exits=0).stdout)

    assert document == extcli("state", "get", "channel", "-o", "json").json
