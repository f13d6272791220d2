"""`extcli logs`: lists and shows the journal of the live service."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path

import httpx
import pytest

from emulator.core.config.settings import Settings
from support.faults import add_fault
from support.har import har_errors
from support.journal import entries_of
from support.service import CHANNEL, CLIENT_ID, LiveServer, live_server


def test_logs_lists_responses_in_order(extcli, filled):
    rows = extcli("logs", "--path", "/v1/e/", "-o", "plain").rows

    assert ["POST /v1/e/vote?id=rps", "GET /v1/e/vote_logs", "GET /v1/e/polls"] == [row[2] for row in rows]
    assert ["200", "403", "200"] == [row[1] for row in rows]
    assert ["viewer:5551@777", "viewer:5551@777", "admin:9001@777"] == [row[3] for row in rows]
    assert "the role viewer may not do this" in rows[1][6]


@pytest.mark.parametrize(
    ("options", "paths"),
    [
        ("--status 4xx", ["/v1/e/vote_logs"]),
        ("--path vote?id", ["/v1/e/vote?id=rps"]),
        ("--role admin", ["/v1/e/polls"]),
        ("--method POST --path /v1/", ["/v1/e/vote?id=rps"]),
        ("--user U5551", ["/v1/e/vote?id=rps", "/v1/e/vote_logs"]),
        ('--search "value":2', ["/v1/e/vote?id=rps"]),
        (f"--client-id {CLIENT_ID}", ["/v1/e/vote?id=rps", "/v1/e/vote_logs", "/v1/e/polls"]),
        (f"--channel {CHANNEL} --role admin", ["/v1/e/polls"]),
        ("--kind frame,delivery", []),
        ("--limit 2", ["/v1/e/vote_logs", "/v1/e/polls"]),
    ],
)
def test_filters_select_entries(extcli, filled, options: str, paths: list[str]):
    assert paths == [entry["path"] for entry in extcli("logs", *options.split(), "-o", "jsonl").jsonl]
    extcli("logs", "--status", "many", exits=4)


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


def test_production_has_no_journal(extcli, production: LiveServer):
    for arguments in (["logs"], ["logs", "-f"], ["logs", "export", "--har", "x.har"], ["logs", "replay", "latest"]):
        extcli(*arguments, "--url", production.url, exits=2)


def test_show_prints_all_of_a_refusal(extcli, live: LiveServer, filled):
    (entry,) = extcli("logs", "--status", "403", "-o", "jsonl").jsonl

    shown = extcli("logs", "show", entry["id"], "-o", "table").stdout

    for part in ("GET /v1/e/vote_logs", "403 role is not authorized", "viewer:5551@777", '  "info"'):
        assert part in shown
    assert entry == extcli("logs", "show", str(entry["number"]), "-o", "json").json
    extcli("logs", "show", "nothing", exits=4)


def test_show_prints_the_bodies_in_a_pipe_as_well(extcli, filled):
    facts = dict(extcli("logs", "show", "latest", "-o", "plain").rows)
    voted = extcli("logs", "--path", "id=rps", "-o", "jsonl").jsonl[0]

    assert facts["response body"].startswith('{"polls":')
    assert '{"value":2}' == dict(extcli("logs", "show", voted["id"], "-o", "plain").rows)["request body"]


def test_no_text_of_a_client_moves_the_cursor(extcli, viewer):
    viewer(None, opaque="A\x1b[2J").post("rank", json={"key": "\u202e\x1b[2J"})

    for arguments in (["logs", "-o", "table"], ["logs", "show", "latest", "-o", "table"], ["logs", "-o", "plain"]):
        output = extcli(*arguments).stdout
        assert "\x1b" not in output
        assert "\u202e" not in output


# How the journal's commands show what faults did


@pytest.fixture
def faulty(live: LiveServer, viewer) -> None:
    """A journal with a vote that a fault refused, a late one, and one without a response."""
    for effect, members in (("status", {"status": 500}), ("delay", {"delay": 1}), ("drop", {})):
        add_fault(live, "POST /v1/e/vote", effect, id="first", **members)
        with suppress(httpx.RemoteProtocolError):
            viewer().post("vote", params={"id": "rps"}, json={"value": 1})
    assert 3 == len(entries_of(live, path="/v1/e/vote"))


def test_exports_name_the_fault_of_each_request(extcli, faulty, tmp_path: Path):
    har, lines = tmp_path / "run.har", tmp_path / "run.jsonl"

    extcli("logs", "export", "--har", str(har), "--jsonl", str(lines), "--path", "/v1/e/vote")

    archive = json.loads(har.read_text())
    assert [] == har_errors(archive)
    expected = [(500, "first"), (200, "first"), (0, "first")]
    assert expected == [(each["response"]["status"], each["_fault"]) for each in archive["log"]["entries"]]
    entries = [json.loads(line) for line in lines.read_text().splitlines()]
    assert expected == [(each["status"], each["fault"]) for each in entries]


def test_logs_say_which_fault_acted(extcli, live: LiveServer, faulty):
    shown = extcli("logs", "--path", "/v1/e/vote", "-o", "plain").stdout.splitlines()
    (late,) = entries_of(live, path="/v1/e/vote", status="200")

    assert [True] * 3 == ["fault first" in line for line in shown]
    assert ["fault", "first"] in extcli("logs", "show", late["id"], "-o", "plain").rows
    assert shown[2:] == extcli("logs", "--status", "none", "-o", "plain").stdout.splitlines()
