"""`extcli logs`: lists and shows the journal of the live service."""

from __future__ import annotations

import json
import re
from pathlib import Path

import httpx
import pytest

from emulator.config.extensions import Extension
from emulator.config.settings import Settings
from support.faults import RawClient, add_fault
from support.har import har_errors
from support.journal import entries_of
from support.process import wait_until
from support.service import CHANNEL, CLIENT_ID, SECRET, LiveServer, live_server


def test_logs_lists_responses_in_order(extcli, filled):
    rows = extcli("logs", "--path", "/v1/e/", "-o", "plain").rows

    assert ["POST /v1/e/vote?id=rps", "GET /v1/e/vote_logs", "GET /v1/e/polls"] == [row[2] for row in rows]
    assert ["200", "403", "200"] == [row[1] for row in rows]
    assert ["viewer:5551@777", "viewer:5551@777", "admin:9001@777"] == [row[3] for row in rows]
    assert "the role viewer may not do this" in rows[1][6]


def test_the_table_has_at_most_80_columns(extcli, live: LiveServer, viewer):
    for path in ("vote_logs", f"vote?id={'x' * 200}", "polls?limit=1"):
        viewer("5" * 60).get(path)

    lines = extcli("logs", "-o", "table").stdout.splitlines()

    assert 80 == max(map(len, lines))
    assert all(line[:2].isdigit() or line.startswith(" " * 17) for line in lines)


@pytest.mark.parametrize("options", [(), ("-f", "--count", "4")])
def test_no_line_is_wider_than_the_terminal(extcli, live: LiveServer, viewer, options: tuple[str, ...]):
    for id in ("x" * 64, "short"):
        viewer("5" * 60).get(f"vote?id={'y' * 100}", headers={"X-Request-Id": id})
        viewer("5" * 60).get("vote_logs", headers={"X-Request-Id": id})
    lines = extcli("logs", *options, "-o", "table", env={"COLUMNS": "80"}).stdout.splitlines()

    assert 80 >= max(map(len, lines))


def test_why_a_call_was_refused_is_wrapped_and_not_cut(extcli, viewer):
    viewer("5" * 20).get("vote_logs")

    table = extcli("logs", "-o", "table", env={"COLUMNS": "80"}).stdout
    assert "the role viewer may not do this; allowed: admin, backend" in " ".join(table.split())
    assert re.search(r"^\d\d:\d\d:\d\d\.\d{3} +403", table, re.MULTILINE)
    assert "…" not in table


def test_a_long_id_is_below_its_request(extcli, viewer):
    viewer("5").get("vote_logs", headers={"X-Request-Id": "x" * 60})

    lines = extcli("logs", "-o", "table", env={"COLUMNS": "80"}).stdout.splitlines()
    assert f"{' ' * 17}{'x' * 60}" in lines


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


def test_a_table_says_that_there_are_more_entries(extcli, live: LiveServer, viewer):
    for _ in range(101):
        viewer().get("vote")
    note = "only the latest 100; --limit N or --since TIME shows more\n"

    assert note == extcli("logs", "-o", "table").stderr
    assert "" == extcli("logs", "--method", "POST", "-o", "table").stderr
    for options in (["--limit", "5", "-o", "table"], ["--since", "5m", "-o", "table"], ["-o", "plain"]):
        assert "" == extcli("logs", *options).stderr


@pytest.mark.parametrize("options", [(), ("-f", "--count", "1")])
def test_a_table_shows_no_duration_of_a_delivery(extcli, game, options):
    game.data("subscribe", "round")
    extcli("broadcast", "send", "round", "1", "--channel", CHANNEL, "--client-id", CLIENT_ID)

    table = extcli("logs", "--kind", "delivery", "--path", "event:round", *options, "-o", "table").stdout

    assert "delivery event:round" in table
    assert " ms" not in table


@pytest.mark.parametrize("options", [(), ("-f", "--count", "1")])
def test_a_listing_says_nothing_of_the_stage_without_extensions(extcli, options):
    extcli("vote", "cast", "--value", "1")
    journal = ("logs", "--path", "/v1/e/vote", *options)

    assert "production" not in extcli(*journal, "-o", "table").stdout
    assert "production" not in extcli(*journal, "-o", "plain").stdout


def test_a_listing_says_that_production_refuses_a_token_of_the_sandbox(extcli):
    with live_server(Settings(extensions={CLIENT_ID: Extension(CLIENT_ID, (SECRET,))})) as known:
        extcli("vote", "cast", "--value", "1", "--url", known.url)
        table = extcli("logs", "--path", "/v1/e/vote", "-o", "table", "--url", known.url).stdout

    assert "production: refuse; rule=stage" in table


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
    result = extcli("logs", "--status", "many", exits=4)

    assert "status: 'many' is not a status such as 403, 4xx or none" in result.stderr


def test_production_has_no_journal(extcli, production: LiveServer):
    for arguments in (["logs"], ["logs", "-f"], ["logs", "export", "--har", "x.har"]):
        result = extcli(*arguments, "--url", production.url, exits=2)
        assert "has no journal" in result.stderr


def test_logs_reports_that_a_service_has_no_journal(extcli, environment):
    with live_server(Settings(journal=0)) as silent:
        result = extcli("logs", "--url", silent.url)

    assert 4 == result.exit_code
    assert "--journal 0" in result.stderr


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


def test_show_prints_the_bodies_in_a_pipe_as_well(extcli, filled):
    facts = dict(extcli("logs", "show", "latest", "-o", "plain").rows)
    voted = extcli("logs", "--path", "id=rps", "-o", "jsonl").jsonl[0]

    assert facts["response body"].startswith('{"polls":')
    assert '{"value":2}' == dict(extcli("logs", "show", voted["id"], "-o", "plain").rows)["request body"]


def test_show_names_the_recipients_of_a_requests_broadcasts(extcli, game):
    game.data("subscribe", "round")
    extcli("broadcast", "send", "round", "1", "--channel", CHANNEL, "--client-id", CLIENT_ID)
    (delivery,) = extcli("logs", "--kind", "delivery", "--path", "event:round", "-o", "jsonl").jsonl

    shown = extcli("logs", "show", delivery["id"], "-o", "table").stdout
    assert f"event:round to 1, {delivery['recipients'][0]}" in shown
    assert delivery in extcli("logs", "show", delivery["id"], "-o", "json").json["deliveries"]


def test_show_says_that_an_entry_is_gone(extcli, live: LiveServer):
    result = extcli("logs", "show", "nothing", exits=4)

    assert "may be too old" in result.stderr


def test_no_text_of_a_client_moves_the_cursor(extcli, viewer):
    viewer(None, opaque="A\x1b[2J").post("rank", json={"key": "\u202e\x1b[2J"})

    for arguments in (["logs", "-o", "table"], ["logs", "show", "latest", "-o", "table"], ["logs", "-o", "plain"]):
        output = extcli(*arguments).stdout
        assert "\x1b" not in output
        assert "\u202e" not in output


def test_a_call_of_the_control_api_has_no_verdict_in_the_list(extcli):
    extcli("clock", "advance", "1s")

    assert [""] == [row[-1] for row in extcli("logs", "-o", "plain").rows]


# How the journal's commands show what faults did


PATH = "/v1/e/vote?id=rps"


@pytest.fixture
def faulty(live: LiveServer, viewer) -> None:
    """A journal with a vote that a fault refused, a late one, and one without a response."""
    for effect, members in (("status", {"status": 500}), ("delay", {"delay": 1}), ("drop", {})):
        add_fault(live, "POST /v1/e/vote", effect, id="first", **members)
        try:
            viewer().post("vote", params={"id": "rps"}, json={"value": 1})
        except httpx.RemoteProtocolError:
            assert "drop" == effect
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


def test_logs_say_which_fault_acted(extcli, faulty):
    shown = extcli("logs", "--path", "/v1/e/vote", "-o", "plain").stdout.splitlines()

    assert "docs: Faults: fault first answered 500" in shown[0]
    assert shown[1].endswith("fault first")
    assert "docs: Faults: fault first gave no response" in shown[2]


def test_logs_select_requests_without_a_response(extcli, faulty):
    (line,) = extcli("logs", "--status", "none", "-o", "plain").stdout.splitlines()

    assert "fault first gave no response" in line


def test_one_entry_names_its_fault(extcli, live: LiveServer, faulty):
    (late,) = entries_of(live, path="/v1/e/vote", status="200")

    assert re.search("^fault +first$", extcli("logs", "show", late["id"], "-o", "table").stdout, re.MULTILINE)


@pytest.mark.parametrize(("effect", "answer"), [("status", "503 Service Unavailable"), ("stall", "no response")])
def test_explain_names_the_fault_and_how_to_remove_it(extcli, live: LiveServer, viewer, effect: str, answer: str):
    add_fault(live, "POST /v1/e/vote", effect)
    with RawClient(live) as raw:
        raw.send(viewer(), "POST", PATH, {"value": 1})
        wait_until(lambda: entries_of(live, path="/v1/e/vote"))
        text = extcli("explain", "-o", "table").stdout

    assert f"POST /v1/e/vote: {answer}" in text
    assert "A fault that you added caused this (rule docs: Faults)" in text
    assert "What to do: Remove it: `extcli fault rm f1`." in text
