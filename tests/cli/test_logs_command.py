"""`extcli logs`: lists and shows the journal of the live service."""

from __future__ import annotations

import pytest

from support.service import CHANNEL, CLIENT_ID, LiveServer


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
