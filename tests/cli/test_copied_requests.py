"""Requests of the journal as commands, lines for curl and tests: running them repeats the request."""

from __future__ import annotations

import json
import os
import random
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

import pytest

from support import preloaded
from support.journal import journal_of
from support.plugin_runs import run_pytest
from support.role_table import LONG_BODIES, RECEIPT, ROWS, Row, each
from support.service import CHANNEL, CLIENT_ID, LiveServer

ROLES = ("viewer", "broadcaster", "admin", "backend")
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


@each([row for row in ROWS if row.name not in ("validate_pin", "codes")])
def test_a_request_printed_as_a_command_repeats_the_request(extcli, live: LiveServer, row: Row):
    role = next(role for role in ROLES if role in row.roles)
    # A broadcaster owns the channel; a sandbox token of another role without a user names an anonymous one.
    client = live.client(role, user=USERS[role], channel=CHANNEL)
    body = LONG_BODIES.get(row.body, row.body).replace("RECEIPT", RECEIPT).replace("QUESTION", "q1")
    client.request(row.method, row.name, content=body)
    first = latest(live)

    run(extcli, copied(live, "extcli"))

    again = latest(live)
    if "[hidden]" in first["request"]["text"]:
        assert "# replace [hidden] by the secret" in copied(live, "extcli", first["number"])
        return
    assert meaning(first) == meaning(again)
    assert again["number"] > first["number"]


@pytest.mark.parametrize("text", ["it's", 'say "hi"', "$HOME `id` $(id)", "a\\b", "día ☀", "-x", "; #1\n2", " "])
def test_no_text_of_a_request_is_read_by_the_shell(extcli, live: LiveServer, text: str):
    viewer = live.client("viewer", user=None, channel=CHANNEL, opaque=f"A{text}")
    viewer.post("rank", params={"id": "r"}, json={"key": text})
    first = latest(live)

    run(extcli, copied(live, "extcli"))

    again = latest(live, path="rank")
    if first["status"] == 200 and text.isprintable():
        assert meaning(first) == meaning(again)
        assert first["caller"]["opaque_id"] == again["caller"]["opaque_id"]


def test_a_curl_line_repeats_the_request(live: LiveServer, environment: dict[str, str], viewer):
    viewer("5551").post("rank", params={"id": "it's; 1"}, json={"key": "$HOME `id` 'x'"})
    first = latest(live)
    line = copied(live, "curl")

    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"  # the line asks extcli for a token
    variables = {**os.environ, "PATH": path}
    done = subprocess.run(["sh", "-c", line], env=variables, capture_output=True, text=True, timeout=60, check=True)

    again = latest(live)
    assert "accepted" in done.stdout
    assert again["number"] > first["number"]
    assert meaning(first) == meaning(again)
    assert "eyJ" not in line


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


def test_a_frame_that_begins_with_a_dash_becomes_no_option(live: LiveServer, game):
    game.error("--token-file=/etc/passwd")
    entry = latest(live, kind="frame")

    answer = live._http.get("/_emulator/journal/entry", params={"id": entry["number"], "as": "extcli"})

    assert 400 == answer.status_code
    assert "is not a form of this frame, whose action or target begins with '-'" in answer.json()["errors"][0]["detail"]


def test_an_id_that_begins_with_a_dash_becomes_no_option(live: LiveServer, viewer):
    viewer("5551").get("vote", params={"id": "--token-file=/etc/passwd"})
    read = copied(live, "extcli")
    viewer("5551").post("vote", params={"id": "-p"}, json={"value": 2})

    assert "extcli api GET 'vote?id=" in read
    assert "extcli api POST 'vote?id=" in copied(live, "extcli")


@pytest.mark.parametrize(
    ("form", "detail"),
    [("fax", "as: 'fax' is not one of curl, extcli, pytest"), ("pytest", "a test is of a request below /v1/e/")],
)
def test_a_form_that_is_impossible_is_refused(live: LiveServer, form: str, detail: str):
    live._http.post("/_emulator/clock", json={})
    answer = live._http.get("/_emulator/journal/entry", params={"id": "latest", "as": form})

    assert 400 == answer.status_code
    assert detail in answer.json()["info"]


def test_show_prints_what_the_service_renders(extcli, live: LiveServer, viewer):
    viewer("5551").get("vote?id=rps")

    for form in ("curl", "extcli", "pytest"):
        assert copied(live, form) == extcli("logs", "show", "latest", "--copy-as", form).stdout


def test_a_request_without_a_token_is_copied_without_one(live: LiveServer):
    live._http.get("/v1/e/user_info")

    assert "# the request had no valid token, and neither has this" in copied(live, "curl")
    assert "--no-auth" in copied(live, "extcli")


def test_a_token_for_an_unshared_id_names_the_opaque_id(extcli, live: LiveServer):
    token = extcli("token", "sandbox", "--as", "viewer", "--opaque", "A123", "-o", "plain").stdout.strip()

    with live.bearer(token, client_id=CLIENT_ID) as client:
        assert ("", "A123") == tuple(client.get("user_info").json()[name] for name in ("user_id", "opaque_user_id"))


def test_a_copied_seed_says_that_its_body_is_hidden_and_not_incomplete(live: LiveServer):
    live._http.put("/_emulator/seed", json={"extcli": 1, "client_id": CLIENT_ID, "channel": CHANNEL}).raise_for_status()

    assert copied(live, "extcli").startswith("# replace [hidden] by the secret\n")


# A line of `--dry-run=curl`, run by a shell, has the same effect as the command: 50 generated commands, real curl


CALLS = 50
TEXTS = [
    "blue",
    "it's",
    'say "hi"',
    "$HOME `id` $(id)",
    "a\\b",
    "día ☀",
    "[1]{2}",
    "@file",
    "-x",
    "50% & more; #1",
    " ",
]
READS = [
    "vote list", "vote get p1", "vote get p2", "vote logs p1", "vote config p1", "vote config p2", "rank get r1",
    "rank list", "accumulate get b1", "accumulate list", "state all", "store-config all",
    "json-store get j1", "trivia list", "trivia leaderboard", "user list",
]  # fmt: skip
"""Commands that together show all that the calls below may change."""


def generated(random: random.Random) -> list[str]:
    """Return the arguments of a command that writes."""
    text, number = random.choice(TEXTS), random.randrange(5)
    document = json.dumps({"text": text, "number": number}, ensure_ascii=False)
    poll, user = f"p{random.randint(1, 2)}", f"viewer:U{random.randint(1, 4)}"
    channel = random.choice([[], ["--channel", "1002"]])
    return random.choice(
        [
            ["vote", "cast", poll, "--value", str(number), "--as", user, *channel],
            ["vote", "define", poll, "--prompt", text, "--option", text, "--option", "other", "--replace", *channel],
            ["vote", "rm", poll, *channel],
            ["rank", "submit", "r1", f"--key={text}", "--as", user],
            ["accumulate", "add", "b1", document, "--as", user],
            ["state", "set", "channel", document, "--yes"],
            ["state", "set", "viewer", document, "--as", user],
            ["store-config", "set", "channel", document],
            ["json-store", "set", "j1", document],
            ["trivia", "define", f"q{number}", f"--name={text}"],
            ["broadcast", "send", "round", document],
            ["datastream", "send", document],
            ["api", "POST", "rank?id=r1", "-f", f"key={text}", "--as", user],
        ]
    )


@pytest.mark.slow
@pytest.mark.long
def test_curl_lines_have_the_effect_of_their_commands(extcli, live, tmp_path: Path):
    if shutil.which("curl") is None:
        pytest.skip("needs curl")
    urls = [f"{live.url}/_ns/command", f"{live.url}/_ns/curl"]
    for url in urls:
        assert 0 == extcli("clock", "freeze", "--url", url).exit_code
        assert 0 == extcli("clock", "set", "2026-01-01T00:00:00Z", "--url", url).exit_code
    random_calls = random.Random(20260101)
    calls = [generated(random_calls) for _ in range(CALLS)]
    lines, succeeded = [], []
    for call in calls:
        succeeded.append(extcli(*call, "--url", urls[0]).exit_code == 0)
        printed = extcli(*call, "--dry-run=curl", "--url", urls[1])
        # A command that finds out while it reads that it cannot write prints nothing.
        lines.append(printed.stdout)
        if printed.stdout:
            _run(printed.stdout, tmp_path, succeeds=succeeded[-1])

    assert CALLS * 0.8 < sum(map(bool, lines))
    assert CALLS * 0.6 < sum(succeeded)
    for command in READS:
        args = [*command.split(), "-o", "json"]
        direct, by_curl = (extcli(*args, "--url", url) for url in urls)
        assert direct.stdout == by_curl.stdout, command


def _run(line: str, folder: Path, *, succeeds: bool) -> None:
    """Run a printed line in a shell, as a user would who pasted it."""
    if not (folder / "extcli").exists():
        preloaded.put_program(folder)
    path = os.pathsep.join([str(folder), os.environ["PATH"]])
    result = subprocess.run(
        ["bash", "-c", line], env={**os.environ, "PATH": path}, capture_output=True, text=True, timeout=30, check=False
    )
    assert succeeds == (result.returncode == 0), (line, result.stdout, result.stderr)
