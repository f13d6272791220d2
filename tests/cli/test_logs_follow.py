"""`extcli logs -f`: follows the journal, and says what was lost."""

from __future__ import annotations

import json
import signal
from pathlib import Path
from typing import Any

import pytest

from emulator.core.settings import Settings
from support.broadcasts import subscribed_game
from support.har import har_errors
from support.journal import journal_of
from support.listen_process import TIMEOUT, read_until
from support.process import server_process
from support.profile_files import write_profiles
from support.program import SECRET_BASE64
from support.service import CHANNEL, Client, LiveServer, live_server


def test_follow_shows_entries_as_they_happen(shell, viewer):
    process = shell("logs", "-f", "--path", "vote", "-o", "plain", "--limit", "1", "--count", "3")
    assert process.stdout is not None
    seen = []
    for number in range(3):
        viewer().get(f"vote?id={number}")
        seen.append(process.stdout.readline().decode().split("\t")[2])

    assert [f"GET /v1/e/vote?id={number}" for number in range(3)] == seen
    assert 0 == process.wait(TIMEOUT)


def test_follow_ends_at_the_timeout_or_its_count(extcli, filled):
    result = extcli("logs", "-f", "--since", "0", "--path", "/v1/e/", "--timeout", "300ms", "-o", "jsonl", exits=0)
    latest = extcli("logs", "-f", "--limit", "2", "--count", "2", "-o", "jsonl").jsonl

    assert 3 == sum("lost" not in line for line in result.jsonl)
    assert ["/v1/e/vote_logs", "/v1/e/polls"] == [entry["path"] for entry in latest]


@pytest.mark.parametrize("follow", [(), ("-f", "--timeout", "300ms")], ids=["a list", "follow"])
def test_what_was_lost_after_a_mark_is_counted(extcli, follow):
    with live_server(Settings(journal=50_000)) as small:
        voter = small.client("viewer", user="1", channel=CHANNEL)
        for _ in range(200):
            voter.get("vote")

        result = extcli("logs", *follow, "--since", "0", "-o", "jsonl", "--url", small.url)

    entries = [line for line in result.jsonl if "lost" not in line]
    assert f"gap: {200 - len(entries)} entries " in result.stderr
    assert not follow or {"lost": 200 - len(entries)} == result.jsonl[0]


def test_follow_resumes_after_a_lost_connection_and_says_the_gap(shell, tmp_path: Path):
    port = ""
    with server_process() as first:
        port = first.url.rpartition(":")[2]
        process = shell("logs", "-f", "--path", "/v1/e/", "-o", "jsonl", "--count", "2", "--url", first.url)
        assert process.stdout is not None
        first.client("viewer", user="1", channel=CHANNEL).get("vote?id=before")
        assert "id=before" in json.loads(process.stdout.readline())["path"]
        first.process.send_signal(signal.SIGKILL)
        assert read_until(process, "lost: ")
    with server_process(EXTCLI_SERVE_PORT=port) as second:
        second.client("viewer", user="1", channel=CHANNEL).get("vote?id=after")
        assert "id=after" in json.loads(process.stdout.readline())["path"]

    assert 0 == process.wait(TIMEOUT)
    assert process.stderr is not None
    stderr = process.stderr.read().decode()
    assert "gap: the service was restarted; entries that it had not sent yet are lost" in stderr
    assert "connected again after" in stderr


# `extcli logs replay`: repeats a request of the journal as its caller


def test_replay_repeats_a_request_as_its_caller(extcli, live: LiveServer, viewer, admin: Client):
    viewer(None, opaque="Aabc").post("vote?id=rps", json={"value": 2})

    result = extcli("logs", "replay", "latest", "-o", "json")

    (outcome,) = result.json["replays"]
    assert (200, 200, True) == (outcome["before"], outcome["status"], outcome["same_body"])
    first, again = extcli("logs", "--path", "vote?id=rps", "--method", "POST", "-o", "jsonl").jsonl
    assert (first["caller"], first["request"]) == (again["caller"], again["request"])
    viewer().get("vote_logs")
    assert [["403", "403", "true"]] == [row[:3] for row in extcli("logs", "replay", "latest", "-o", "plain").rows]


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("PUT", "/v1/e/codes", '{"codes": [["A"]], "names": ["Hat"]}'),
        ("POST", "/v1/e/json_store", json.dumps({"text": "x" * 5_000})),
        ("POST", "/v1/e/vote", b"\xff\xfe"),
        ("POST", "/_emulator/clock", "{}"),
        ("GET", "/v1/e/user_info", ""),
    ],
    ids=["a secret", "its beginning", "not text", "a control", "no caller"],
)
def test_a_request_that_the_journal_has_in_part_is_not_repeated(
    extcli, admin: Client, live: LiveServer, method: str, path: str, body: Any
):
    client = live._http if method == "GET" else admin
    client.request(method, f"{live.url}{path}", content=body)
    id = extcli("logs", "--limit", "1", "-o", "json").json["entries"][0]["id"]

    extcli("logs", "replay", id, exits=2)


@pytest.mark.parametrize("chosen", [(), ("--profile", "live")], ids=["by its address", "by name"])
def test_nothing_is_repeated_for_a_profile_of_production(extcli, live: LiveServer, viewer, chosen: tuple[str, ...]):
    viewer().post("vote", json={"value": 1})
    write_profiles(live={"url": live.url, "production": True})
    before = journal_of(live)["mark"]

    extcli("logs", "replay", "latest", *chosen, env={"EXTCLI_SECRET": SECRET_BASE64}, exits=2)

    assert before == journal_of(live)["mark"]


# `extcli logs export`: HAR and JSON lines, without secrets


def test_export_writes_requests_as_har(extcli, live: LiveServer, filled):
    archive = extcli("logs", "export", "--har", "-", "--path", "/v1/e/").json

    assert [] == har_errors(archive)
    vote = archive["log"]["entries"][0]
    assert ("POST", f"{live.url}/v1/e/vote?id=rps") == (vote["request"]["method"], vote["request"]["url"])
    assert ('{"value":2}', 200) == (vote["request"]["postData"]["text"], vote["response"]["status"])
    assert [] == har_errors(extcli("logs", "export", "--har", "-", "--path", "nothing").json)


def test_export_writes_everything_as_json_lines(extcli, live: LiveServer, broadcaster: Client, tmp_path: Path):
    with subscribed_game(live, "admin", user="9001"):
        broadcaster.post("broadcast", json={"event": "e", "data": 1})
    file = tmp_path / "run.har"

    lines = extcli("logs", "export", "--har", str(file), "--jsonl", "-", exits=0).jsonl

    archived = json.loads(file.read_text())["log"]["entries"]
    assert len(archived) == sum(line["kind"] == "request" for line in lines) < len(lines)
