"""`extcli logs`: reads, follows, exports and repeats the journal of the live service."""

from __future__ import annotations

import json
import re
import signal
from pathlib import Path
from typing import Any

import pytest

from emulator.config.settings import Settings
from support.broadcasts import subscribed_game
from support.har import har_errors
from support.listen_process import TIMEOUT, read_until
from support.process import server_process
from support.profile_files import write_profiles
from support.program import SECRET_BASE64
from support.service import CHANNEL, CLIENT_ID, Client, LiveServer, live_server

JWT = re.compile("eyJ")


@pytest.fixture
def filled(viewer, admin: Client) -> None:
    """Make a vote, a refused read and a read."""
    viewer("5551").post("vote?id=rps", json={"value": 2})
    viewer("5551").get("vote_logs")
    admin.get("polls")


def test_logs_lists_what_was_answered_in_order(extcli, filled):
    rows = extcli("logs", "--path", "/v1/e/", "-o", "plain").rows

    assert ["POST /v1/e/vote?id=rps", "GET /v1/e/vote_logs", "GET /v1/e/polls"] == [row[2] for row in rows]
    assert ["200", "403", "200"] == [row[1] for row in rows]
    assert ["viewer:5551@777", "viewer:5551@777", "admin:9001@777"] == [row[3] for row in rows]
    assert "the role viewer may not do this" in rows[1][6]


def test_logs_shows_people_a_table(extcli, filled):
    table = extcli("logs", "--status", "4xx", "-o", "table").stdout

    assert "viewer:5551@777" in table
    assert re.search(r"\d\d:\d\d:\d\d\.\d{3} +403", table)


def test_the_table_has_at_most_80_columns(extcli, live: LiveServer, viewer):
    for path in ("vote_logs", f"vote?id={'x' * 200}", "polls?limit=1"):
        viewer("5" * 60).get(path)

    lines = extcli("logs", "-o", "table").stdout.splitlines()

    assert 80 == max(map(len, lines))
    assert all(line[:2].isdigit() or line.startswith(" " * 17) for line in lines)


@pytest.mark.parametrize(
    ("options", "paths"),
    [
        (["--status", "4xx"], ["/v1/e/vote_logs"]),
        (["--status", "403,404"], ["/v1/e/vote_logs"]),
        (["--path", "vote?id"], ["/v1/e/vote?id=rps"]),
        (["--role", "admin"], ["/v1/e/polls"]),
        (["--method", "POST", "--path", "/v1/"], ["/v1/e/vote?id=rps"]),
        (["--user", "U5551"], ["/v1/e/vote?id=rps", "/v1/e/vote_logs"]),
        (["--search", '"value":2'], ["/v1/e/vote?id=rps"]),
        (["--client-id", CLIENT_ID], ["/v1/e/vote?id=rps", "/v1/e/vote_logs", "/v1/e/polls"]),
        (["--client-id", "other"], []),
        (["--channel", CHANNEL, "--role", "admin"], ["/v1/e/polls"]),
        (["--channel", "1"], []),
        (["--kind", "frame,delivery"], []),
    ],
)
def test_filters_select_entries(extcli, filled, options: list[str], paths: list[str]):
    assert paths == [entry["path"] for entry in extcli("logs", *options, "-o", "jsonl").jsonl]


def test_limit_keeps_the_latest_entries(extcli, filled):
    assert ["/v1/e/vote_logs", "/v1/e/polls"] == [
        entry["path"] for entry in extcli("logs", "--limit", "2", "-o", "jsonl").jsonl
    ]


def test_since_a_mark_lists_all_later_entries(extcli, live: LiveServer, viewer):
    mark = extcli("logs", "-o", "json").json["mark"]
    for _ in range(1_005):
        viewer().get("vote")

    assert 1_005 == len(extcli("logs", "--since", str(mark), "-o", "jsonl").jsonl)
    assert 1_002 == len(extcli("logs", "--limit", "1002", "-o", "jsonl").jsonl)


def test_since_a_time_is_by_the_clock_of_the_machine(extcli, live: LiveServer, filled):
    live.advance(3_600_000)

    assert 4 <= len(extcli("logs", "--since", "5m", "-o", "jsonl").jsonl)
    assert [] == extcli("logs", "--since", "2100-01-01", "-o", "jsonl").jsonl


def test_a_list_after_a_mark_says_how_many_entries_are_gone(extcli, environment):
    with live_server(Settings(journal=50_000)) as small:
        voter = small.client("viewer", user="1", channel=CHANNEL)
        for _ in range(200):
            voter.get("vote")

        result = extcli("logs", "--since", "0", "-o", "json", "--url", small.url)

    assert result.json["lost"] + len(result.json["entries"]) == 200
    assert f"gap: {result.json['lost']:,} entries after that mark" in result.stderr


def test_ns_chooses_the_journal_of_a_namespace(extcli, live: LiveServer, filled):
    extcli("vote", "cast", "--value", "1", "--url", f"{live.url}/_ns/blue")

    for where in (
        ["--ns", "blue"],
        ["--url", f"{live.url}/_ns/blue"],
        ["--url", f"{live.url}/_ns/red", "--ns", "blue"],
    ):
        entries = extcli("logs", "--path", "/v1/e/vote", "-o", "jsonl", *where).jsonl
        assert ["blue"] == [entry["namespace"] for entry in entries]
    assert 3 == len(
        extcli("logs", "--ns", "default", "--path", "/v1/e/", "-o", "jsonl", "--url", f"{live.url}/_ns/red").jsonl
    )


def test_an_invalid_filter_is_reported(extcli):
    result = extcli("logs", "--status", "many")

    assert 4 == result.exit_code
    assert "status: 'many' is not a status such as 403 or 4xx" in result.stderr


def test_production_has_no_journal(extcli, production: LiveServer):
    for arguments in (["logs"], ["logs", "-f"], ["logs", "export", "--har", "x.har"]):
        result = extcli(*arguments, "--url", production.url)
        assert 2 == result.exit_code
        assert "has no journal" in result.stderr


def test_a_service_without_a_journal_says_so(extcli, environment):
    with live_server(Settings(journal=0)) as silent:
        result = extcli("logs", "--url", silent.url)

    assert 4 == result.exit_code
    assert "--journal 0" in result.stderr


# Following


def test_follow_shows_entries_as_they_happen(shell, viewer):
    process = shell("logs", "-f", "--path", "vote", "-o", "plain", "--limit", "1", "--count", "3")
    assert process.stdout is not None
    seen = []
    for number in range(3):
        viewer().get(f"vote?id={number}")
        seen.append(process.stdout.readline().decode().split("\t")[2])

    assert [f"GET /v1/e/vote?id={number}" for number in range(3)] == seen
    assert 0 == process.wait(TIMEOUT)


def test_follow_begins_with_the_latest_entries(extcli, filled):
    lines = extcli("logs", "-f", "--limit", "2", "--count", "2", "-o", "jsonl").jsonl

    assert ["/v1/e/vote_logs", "/v1/e/polls"] == [entry["path"] for entry in lines]


def test_follow_ends_at_the_timeout(extcli, filled):
    result = extcli("logs", "-f", "--since", "0", "--path", "/v1/e/", "--timeout", "300ms", "-o", "jsonl")

    assert (0, 3) == (result.exit_code, sum("lost" not in line for line in result.jsonl))


def test_follow_says_how_many_entries_were_lost(extcli, environment):
    with live_server(Settings(journal=50_000)) as small:
        voter = small.client("viewer", user="1", channel=CHANNEL)
        for _ in range(200):
            voter.get("vote")

        result = extcli("logs", "-f", "--since", "0", "--timeout", "300ms", "-o", "jsonl", "--url", small.url)

    lost, *entries = result.jsonl
    assert {"lost": 200 - len(entries)} == lost
    assert re.search(rf"gap: {lost['lost']} entries were lost before 20\d\d-", result.stderr)


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
    assert "gap: the service was restarted; entries that it had not sent are lost" in stderr
    assert "connected again after" in stderr


def test_count_is_for_following(extcli):
    assert 2 == extcli("logs", "--count", "1").exit_code


# One entry


def test_show_prints_all_of_a_refusal(extcli, live: LiveServer, filled):
    (entry,) = extcli("logs", "--status", "403", "-o", "jsonl").jsonl

    shown = extcli("logs", "show", entry["id"], "-o", "table").stdout

    for part in (
        "GET /v1/e/vote_logs",
        "403 role is not authorized",
        "viewer:5551@777",
        "the role viewer may not",
        '  "info"',
    ):
        assert part in shown
    assert entry == extcli("logs", "show", str(entry["number"]), "-o", "json").json


def test_show_says_that_an_entry_is_gone(extcli, live: LiveServer):
    result = extcli("logs", "show", "nothing")

    assert 4 == result.exit_code
    assert "may be too old" in result.stderr


def test_no_text_of_a_client_moves_the_cursor(extcli, viewer):
    viewer(None, opaque="A\x1b[2J").post("rank", json={"key": "\u202e\x1b[2J"})

    for arguments in (["logs", "-o", "table"], ["logs", "show", "latest", "-o", "table"], ["logs", "-o", "plain"]):
        output = extcli(*arguments).stdout
        assert "\x1b" not in output
        assert "\u202e" not in output


# Export


def test_export_writes_requests_as_har(extcli, live: LiveServer, filled, tmp_path: Path):
    file = tmp_path / "run.har"

    result = extcli("logs", "export", "--har", str(file), "--path", "/v1/e/")

    archive = json.loads(file.read_text())
    assert "wrote 3 entries to" in result.stderr
    assert [] == har_errors(archive)
    vote = archive["log"]["entries"][0]
    assert ("POST", f"{live.url}/v1/e/vote?id=rps", 200) == (
        vote["request"]["method"],
        vote["request"]["url"],
        vote["response"]["status"],
    )
    assert '{"value":2}' == vote["request"]["postData"]["text"]
    assert [{"name": "id", "value": "rps"}] == vote["request"]["queryString"]


def test_export_writes_everything_as_json_lines(extcli, live: LiveServer, broadcaster: Client, tmp_path: Path):
    with subscribed_game(live, "admin", user="9001"):
        broadcaster.post("broadcast", json={"event": "e", "data": 1})
    files = tmp_path / "run.har", tmp_path / "run.jsonl"

    assert 0 == extcli("logs", "export", "--har", str(files[0]), "--jsonl", str(files[1])).exit_code

    lines = [json.loads(line) for line in files[1].read_text().splitlines()]
    archived = json.loads(files[0].read_text())["log"]["entries"]
    assert len(archived) == sum(line["kind"] == "request" for line in lines)


def test_export_to_standard_output(extcli, filled):
    lines = extcli("logs", "export", "--jsonl", "-", "--status", "403", "-q").jsonl

    assert [403] == [line["status"] for line in lines]


def test_an_empty_journal_is_a_valid_archive(extcli, live: LiveServer):
    archive = extcli("logs", "export", "--har", "-", "--path", "nothing").json

    assert [] == har_errors(archive)
    assert [] == archive["log"]["entries"]


@pytest.mark.parametrize("files", [[], ["--har", "x", "--jsonl", "x"]])
def test_an_export_names_different_files(extcli, files: list[str]):
    assert 2 == extcli("logs", "export", *files).exit_code


def test_no_secret_is_in_an_export(extcli, live: LiveServer, admin: Client, broadcaster: Client, tmp_path: Path):
    pin = broadcaster.post("link/pin").json()["pin"]
    broadcaster.post("validate_pin", json={"pin": pin})
    admin.put("codes", json={"codes": [["HAT-SECRET-1"]], "names": ["Hat"]})
    admin.post("codes/mark_from_list", json={"prizes": [0], "prize_limits": [1], "users": ["9001"]})
    admin.post("codes/redeem", json={"prize": 0})
    token = live._http.post("/v1/e/authtoken", json={"app_id": CLIENT_ID}).json()["token"]
    files = tmp_path / "run.har", tmp_path / "run.jsonl"

    extcli("logs", "export", "--har", str(files[0]), "--jsonl", str(files[1]))

    for file in files:
        text = file.read_text()
        assert "codes/redeem" in text
        assert [] == [secret for secret in (token, "HAT-SECRET-1") if secret in text]
        assert not re.search(rf"(?<!\d){pin}(?!\d)", text)
        assert not JWT.search(text)


# Replay


def test_replay_repeats_a_request_as_its_caller(extcli, live: LiveServer, viewer, admin: Client):
    viewer(None, opaque="Aabc").post("vote?id=rps", json={"value": 2})

    result = extcli("logs", "replay", "latest", "-o", "json")

    (outcome,) = result.json["replays"]
    assert (200, 200, True) == (outcome["before"], outcome["status"], outcome["same_body"])
    assert 1 == admin.get("vote?id=rps").json()["count"]
    first, again = [entry for entry in extcli("logs", "--path", "vote?id=rps", "--method", "POST", "-o", "jsonl").jsonl]
    assert first["caller"] == again["caller"]
    assert first["request"] == again["request"]


def test_replay_says_that_the_answer_differs(extcli, viewer):
    viewer("1").get("vote?id=rps")
    id = extcli("logs", "-o", "json", "--limit", "1").json["entries"][0]["id"]
    viewer("2").post("vote?id=rps", json={"value": 1})

    assert "200 before, now 200; the body differs" in extcli("logs", "replay", id, "-o", "table").stdout


def test_replay_repeats_as_often_as_told(extcli, viewer, live: LiveServer):
    viewer().post("accumulate", json={"stars": 5})

    extcli("logs", "replay", "latest", "--times", "4")

    assert 5 == len(live.client("admin", user="1", channel=CHANNEL).get("accumulate").json()["data"])


def test_a_refusal_is_refused_again(extcli, viewer):
    viewer().get("vote_logs")

    assert [["403", "403", "true"]] == [row[:3] for row in extcli("logs", "replay", "latest", "-o", "plain").rows]


@pytest.mark.parametrize(
    ("request_", "why"),
    [
        (("PUT", "/v1/e/codes", '{"codes": [["A"]], "names": ["Hat"]}'), "keeps only the beginning"),
        (("POST", "/v1/e/json_store", json.dumps({"text": "x" * 5_000})), "keeps only the beginning"),
        (("POST", "/v1/e/vote", b"\xff\xfe"), "its body is not UTF-8"),
        (("POST", "/_emulator/clock", "{}"), "it is no request below /v1/e/"),
    ],
)
def test_a_request_that_the_journal_has_in_part_is_not_repeated(
    extcli, admin: Client, live: LiveServer, request_: tuple[str, str, Any], why: str
):
    method, path, body = request_
    admin.request(method, f"{live.url}{path}", content=body)
    id = extcli("logs", "--limit", "1", "-o", "json").json["entries"][0]["id"]

    result = extcli("logs", "replay", id)

    assert 2 == result.exit_code
    assert why in result.stderr


def test_a_request_of_an_unknown_caller_is_not_repeated(extcli, live: LiveServer):
    live._http.get("/v1/e/user_info")

    assert "its caller is unknown" in extcli("logs", "replay", "latest").stderr


def test_nothing_is_repeated_for_a_profile_of_production(extcli, live: LiveServer, viewer, environment):
    viewer().post("vote", json={"value": 1})
    write_profiles(live={"url": live.url, "production": True})

    result = extcli("logs", "replay", "latest", env={"EXTCLI_SECRET": SECRET_BASE64})

    assert 2 == result.exit_code
    assert "requests are never repeated in production" in result.stderr


def test_a_production_service_repeats_nothing(extcli, production: LiveServer):
    assert 0 != extcli("logs", "replay", "latest", "--url", production.url).exit_code
