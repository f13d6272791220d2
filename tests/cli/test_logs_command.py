"""`extcli logs`: lists, shows, follows, replays and exports the journal of the live service."""

from __future__ import annotations

import json
import signal
from pathlib import Path

import pytest

from emulator.core.settings import Settings
from support.broadcasts import subscribed_game
from support.har import har_errors
from support.journal import journal_of
from support.listen_process import TIMEOUT, read_until
from support.process import server_process
from support.profile_files import write_profiles
from support.program import SECRET_BASE64
from support.service import CHANNEL, CLIENT_ID, Client, LiveServer, live_server


def test_logs_lists_responses_in_order(extcli, filled):
    rows = extcli("logs", "--path", "/v1/e/", "-o", "plain").rows

    assert ["POST /v1/e/vote?id=rps", "GET /v1/e/vote_logs", "GET /v1/e/polls"] == [row[2] for row in rows]
    assert ["200", "403", "200"] == [row[1] for row in rows]
    assert ["viewer:5551@777", "viewer:5551@777", "admin:9001@777"] == [row[3] for row in rows]
    assert "the role viewer may not do this" in rows[1][6]


def test_filters_select_entries(extcli, filled):
    for options, paths in (
        ("--status 4xx --user U5551", ["/v1/e/vote_logs"]),
        ("--path vote?id --method POST", ["/v1/e/vote?id=rps"]),
        (f"--role admin --client-id {CLIENT_ID} --channel {CHANNEL}", ["/v1/e/polls"]),
        ('--search "value":2', ["/v1/e/vote?id=rps"]),
        ("--kind frame,delivery", []),
        ("--limit 2", ["/v1/e/vote_logs", "/v1/e/polls"]),
    ):
        assert paths == [entry["path"] for entry in extcli("logs", *options.split(), "-o", "jsonl").jsonl], options
    extcli("logs", "--status", "many", exits=4)


def test_since_a_mark_lists_all_later_entries(extcli, live: LiveServer, viewer):
    mark = extcli("logs", "-o", "json").json["mark"]
    client = viewer()
    for _ in range(1_005):
        client.get("vote")

    assert 1_005 == len(extcli("logs", "--since", str(mark), "-o", "jsonl").jsonl)
    assert 1_002 == len(extcli("logs", "--limit", "1002", "-o", "jsonl").jsonl)


def test_since_a_time_is_by_the_clock_of_the_machine(extcli, live: LiveServer, filled):
    live.advance(3_600_000)

    assert 4 <= len(extcli("logs", "--since", "5m", "-o", "jsonl").jsonl)
    assert [] == extcli("logs", "--since", "2100-01-01", "-o", "jsonl").jsonl


def test_ns_chooses_the_journal_of_a_namespace(extcli, live: LiveServer, filled):
    red = ("--url", f"{live.url}/_ns/red")
    extcli("vote", "cast", "--value", "1", "--url", f"{live.url}/_ns/blue")

    for where, found in (
        (("--ns", "blue"), ["blue"]),
        (("--url", f"{live.url}/_ns/blue"), ["blue"]),
        ((*red, "--ns", "blue"), ["blue"]),
        ((*red, "--ns", "default"), ["default"] * 3),
    ):
        entries = extcli("logs", "--path", "/v1/e/", "-o", "jsonl", *where).jsonl
        assert found == [entry["namespace"] for entry in entries], where


def test_production_has_no_journal(extcli, production: LiveServer):
    for arguments in (["logs"], ["logs", "-f"], ["logs", "export", "--har", "x.har"], ["logs", "replay", "latest"]):
        extcli(*arguments, "--url", production.url, exits=4)


def test_show_prints_all_of_a_refusal(extcli, live: LiveServer, filled):
    (entry,) = extcli("logs", "--status", "403", "-o", "jsonl").jsonl

    shown = extcli("logs", "show", entry["id"], "-o", "table").stdout

    for part in ("GET /v1/e/vote_logs", "403 role is not authorized", "viewer:5551@777", '  "info"'):
        assert part in shown
    assert entry == extcli("logs", "show", str(entry["number"]), "-o", "json").json
    extcli("logs", "show", "nothing", exits=4)


# Mistakes that get 200: what commands print. `features/test_silent_mistakes.py` has the rules


@pytest.mark.parametrize(
    ("command", "hint"), [("vote cast lunhc --value 1", "lunch"), ("json-store get levle", "level")]
)
def test_the_command_that_makes_a_mistake_prints_the_hint_of_the_service(extcli, command, hint):
    extcli("vote", "cast", "lunch", "--value", "1")
    extcli("json-store", "set", "level", "a=1", "--as", "broadcaster")

    said = extcli(*command.split()).stderr

    assert [hint] == [line.rpartition("did you mean ")[2].rstrip("?") for line in said.splitlines() if "hint: " in line]
    *_, id, note = extcli("logs", "-o", "plain").rows[-1]
    assert f"did you mean {hint}?" in note
    assert f"did you mean {hint}?" in " ".join(extcli("explain", id, "-o", "table").stdout.split())


def test_logs_show_the_client_ids_if_there_are_several(extcli):
    extcli("vote", "cast", "--value", "1")
    assert CLIENT_ID not in extcli("logs", "-o", "table").stdout
    extcli("vote", "cast", "--value", "1", "--client-id", "other")

    text = " ".join(extcli("logs", "-o", "table").stdout.split())
    assert f"viewer:U1@1001 of {CLIENT_ID}" in text
    assert "viewer:U1@1001 of other" in text


# `extcli logs -f`: follows the journal, and says what was lost


def test_follow_shows_entries_as_they_happen(shell, viewer):
    process = shell("logs", "-f", "--path", "vote", "-o", "plain", "--limit", "1", "--count", "3")
    seen = []
    for number in range(3):
        viewer().get(f"vote?id={number}")
        seen.append(process.stdout.readline().split("\t")[2])

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
        first.client("viewer", user="1", channel=CHANNEL).get("vote?id=before")
        assert "id=before" in json.loads(process.stdout.readline())["path"]
        first.process.send_signal(signal.SIGKILL)
        assert read_until(process, "lost: ")
    with server_process(EXTCLI_SERVE_PORT=port) as second:
        second.client("viewer", user="1", channel=CHANNEL).get("vote?id=after")
        assert "id=after" in json.loads(process.stdout.readline())["path"]

    assert 0 == process.wait(TIMEOUT)
    stderr = process.stderr.read()
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
def test_a_request_that_the_journal_has_in_part_is_not_repeated(extcli, admin, live: LiveServer, method, path, body):
    client = live._http if method == "GET" else admin
    client.request(method, f"{live.url}{path}", content=body)
    id = extcli("logs", "--limit", "1", "-o", "json").json["entries"][0]["id"]

    extcli("logs", "replay", id, exits=2)


def test_nothing_is_repeated_for_a_profile_of_production(extcli, live: LiveServer, viewer):
    viewer().post("vote", json={"value": 1})
    write_profiles(live={"url": live.url, "production": True})
    before = journal_of(live)["mark"]

    for chosen in ((), ("--profile", "live")):
        extcli("logs", "replay", "latest", *chosen, env={"EXTCLI_SECRET": SECRET_BASE64}, exits=2)

    assert before == journal_of(live)["mark"]


# `extcli logs export`: HAR and JSON lines, without secrets


def test_export_writes_requests_as_har_and_everything_as_json_lines(
    extcli, live: LiveServer, filled, broadcaster: Client, tmp_path: Path
):
    with subscribed_game(live, "admin", user="9001"):
        broadcaster.post("broadcast", json={"event": "e", "data": 1})
    file = tmp_path / "run.har"

    lines = extcli("logs", "export", "--har", str(file), "--jsonl", "-", exits=0).jsonl

    archived = json.loads(file.read_text())["log"]["entries"]
    assert len(archived) == sum(line["kind"] == "request" for line in lines) < len(lines)
    archive = extcli("logs", "export", "--har", "-", "--path", "/v1/e/vote").json
    assert [] == har_errors(archive)
    vote = archive["log"]["entries"][0]
    assert ("POST", f"{live.url}/v1/e/vote?id=rps") == (vote["request"]["method"], vote["request"]["url"])
    assert ('{"value":2}', 200) == (vote["request"]["postData"]["text"], vote["response"]["status"])
    assert [] == har_errors(extcli("logs", "export", "--har", "-", "--path", "nothing").json)
