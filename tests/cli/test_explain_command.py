"""`extcli explain`: what happened, why, and what to do; and requests that a tool makes for itself, which it skips."""

from __future__ import annotations

import json
import re

import httpx
import pytest

from emulator.contract import rules
from extcli.completion import CommandLine, candidates, read_table
from support.pages import main_of
from support.program import http_response
from support.service import LiveServer

HINT = re.compile(r"^  extcli explain (\S+)$", re.MULTILINE)


@pytest.fixture
def refused(extcli) -> str:
    """The request id of a refused call, as the hint names it."""
    result = extcli("vote", "rm", "lunch", "--as", "viewer", "--yes", exits=4)
    return str(HINT.search(result.stderr)[1])  # type: ignore[index]


def test_the_hint_explains_the_refused_call(extcli, refused: str):
    result = extcli("explain", refused, "-o", "json", exits=0)

    assert refused == result.json["entry"]["id"]
    assert ("role viewer", "role broadcaster, admin or backend") == (
        result.json["explanation"]["held"],
        result.json["explanation"]["needed"],
    )


def test_a_refused_socket_request_can_be_explained(extcli):
    refused = extcli("socket", "send", "set", "state", "--data", '{"state_id":"extension","state":{}}')

    hint = HINT.search(refused.stderr)
    assert hint
    explained = extcli("explain", hint[1], "-o", "json").json
    assert ("set state", "S1") == (explained["entry"]["name"], explained["explanation"]["rule"])


def test_the_hint_names_the_service_that_the_options_named(extcli, live: LiveServer):
    url = f"{live.url}/_ns/hinted"
    refused = extcli("vote", "cast", "--value", "100", "--url", url, env={"EXTCLI_URL": "http://127.0.0.1:1"})

    hint = refused.stderr.splitlines()[-1].split()
    assert ["extcli", "explain", "--url", url] == [*hint[:2], *hint[3:]]
    assert "Value out of bounds" in extcli(*hint[1:], env={"EXTCLI_URL": "http://127.0.0.1:1"}).stdout


def test_without_an_argument_the_latest_refusal_is_explained(extcli):
    assert "the journal has no refused request\n" == extcli("explain", "-o", "table", exits=0).stdout
    refused = HINT.search(extcli("vote", "rm", "lunch", "--as", "viewer", "--yes", exits=4).stderr)
    extcli("vote", "get")

    assert refused
    assert refused[1] == extcli("explain", "-o", "json").json["entry"]["id"]


def test_a_refusal_is_explained_in_three_paragraphs(extcli, refused: str):
    what, why, step = extcli("explain", refused, "-o", "table").stdout.split("\n\n")

    assert what.startswith("DELETE /v1/e/vote: 403 Forbidden\nrole is not authorized: the role viewer may not do this")
    assert refused in what
    assert why.startswith(
        "Why: The role may not do this (rule spec: Authentication).\n"
        "  got       role viewer\n"
        "  expected  role broadcaster, admin or backend\n"
    )
    facts = extcli("explain", refused, "-o", "plain").rows
    assert [] == [row for row in (["status", "403"], ["held", "role viewer"]) if row not in facts]
    assert "What to do: Send a token of the role broadcaster (with extcli: `--as broadcaster`)." == " ".join(
        step.split()
    )


def test_explain_reports_that_a_call_was_not_refused(extcli):
    trace = extcli("vote", "get", "-v").stderr

    shown = extcli("explain", re.findall(r"x-request-id: (\S+)", trace)[-1], "-o", "table").stdout

    assert shown.startswith("GET /v1/e/vote: 200 OK")
    assert "The request was not refused." in shown


def test_every_rule_is_explained_and_most_without_a_service(extcli):
    names = {id: id for id in rules.rules()} | {"trivia": "gaps: Trivia"}
    for name, id in names.items():
        alone = ("--url", "http://127.0.0.1:1") if name in ("A1", "trivia", "stage") else ()
        result = extcli("explain", name, "-o", "json", *alone, exits=0)
        assert rules.rules()[id]["text"] == result.json["rule"]["text"]


def test_all_rulings_are_listed_with_their_first_sentence_without_a_service(extcli):
    listed = extcli("explain", "--rulings", "-o", "table", "--url", "http://127.0.0.1:1", exits=0).stdout

    assert all(f"\n{id}  " in listed for id in ("W2", "A1", "P5"))
    assert "(decision 0004)" in listed
    assert "`authtoken` returns" not in listed
    assert 2 == extcli("explain", "A1", "--rulings").exit_code


def test_an_unknown_name_is_refused_with_the_nearest_rules(extcli):
    said = extcli("explain", "A11", exits=4).stderr

    assert "A1" in said.splitlines()[1]
    assert "only an emulator" not in said
    assert not HINT.search(said)


def test_errors_of_other_services_and_as_json_have_no_hint(extcli, answering):
    body = json.dumps({"reason": "Value out of bounds", "info": "value: 100 is not within -99 to 99"})
    cast = ("vote", "cast", "--value", "100")

    assert not HINT.search(extcli(*cast, "--url", answering(http_response("400 Bad Request", body)), exits=4).stderr)
    said = extcli(*cast, "-o", "json").stderr
    assert "request_id" in json.loads(said)["error"]
    assert "extcli explain" not in said


def test_the_latest_refused_preflight_and_what_production_would_do_are_explained(extcli, live: LiveServer):
    headers = {"Origin": "https://page.example", "Access-Control-Request-Headers": "x-panel"}
    httpx.options(f"{live.url}/v1/e/vote", headers=headers)
    id = live.client("viewer", user="1").get("vote").headers["x-request-id"]  # its token has no exp

    assert "x-panel" in extcli("explain", "-o", "table").stdout
    assert ["production", "refuse; rule=exp"] in extcli("explain", id, "-o", "plain").rows
    assert "Production: refuse (rule exp)." in extcli("explain", id, "-o", "table").stdout


# Probes: the journal has them, and leaves them out of what it lists


def listed(extcli, *options: str) -> list[str]:
    """Return the requests that `extcli logs` lists."""
    requests = [row[2] for row in extcli("logs", *options, "-o", "plain").rows]
    return [each for each in requests if each != "POST /_emulator/reset"]


@pytest.mark.parametrize(
    ("command", "asked", "probes"),
    [
        ("vote cast lunch --value 1 -o table", ["POST /v1/e/vote?id=lunch"], {"authtoken", "vote_config?id=lunch"}),
        ("vote define lunch --prompt ?", ["POST /v1/e/vote_config"], {"authtoken", "vote_config?id=lunch"}),
        ("vote rm lunch --as backend --all-channels --yes", ["DELETE /v1/e/vote?id=lunch"], {"authtoken"}),
        ("vote list", ["GET /v1/e/polls?cursor=0"], {"authtoken"}),
        ("token sandbox", [], {"authtoken"}),
        ("doctor", [], {"clock", "authtoken", "user_info", "polls?cursor=0", "faults"}),
    ],
)
def test_logs_lists_the_users_requests_but_no_probes(extcli, command: str, asked: list[str], probes: set[str]):
    extcli(*command.split())

    assert asked == listed(extcli)
    others = {each.rpartition("/")[2] for each in listed(extcli, "--probes") if each not in asked}
    assert probes == others


def test_completion_leaves_no_trace_in_the_listing(extcli, live: LiveServer, monkeypatch):
    monkeypatch.setattr("extcli.completion.TIMEOUT_SECONDS", 5)
    candidates(CommandLine(read_table(), "extcli vote get "), {"EXTCLI_URL": live.url})

    assert [] == listed(extcli)
    assert ["GET /v1/e/polls?limit=1000"] == listed(extcli, "--probes")


def test_explain_without_an_id_skips_probes(extcli):
    extcli("vote", "cast", "lunch", "--value", "100", exits=4)
    extcli("vote", "cast", "lunch", "--value", "1", "-o", "table")  # its look at the definition is a 404

    assert "POST /v1/e/vote" == extcli("explain", "-o", "json").json["entry"]["name"]
    assert "POST /v1/e/vote" == extcli("logs", "show", "latest", "-o", "json").json["endpoint"]
    for options in (("--count", "=0"), ("--count", "2", "--probes")):
        extcli("expect", "journal", "GET /v1/e/vote_config", *options, exits=0 if "=0" in options else 7)
    extcli("expect", "parity", exits=0)


def test_the_stream_and_the_dashboard_leave_probes_out(live: LiveServer, viewer):
    httpx.get(f"{live.url}/v1/e/user_info", headers={"x-request-id": "probe-1"})
    viewer("5551").get("vote?id=rps")
    lines = httpx.get(f"{live.url}/_emulator/journal/stream?since=0&timeout=0&path=/v1/e/").text.splitlines()
    screen = f"{live.url}/_emulator/ui/requests"

    assert ["GET /v1/e/vote"] == [each["endpoint"] for each in map(json.loads, lines) if "number" in each]
    assert "user_info" not in main_of(screen)
    assert "user_info" in main_of(f"{screen}?probes=true")


# Responses of other programs


def test_a_response_that_is_too_large_is_no_service(extcli, answering, monkeypatch):
    monkeypatch.setattr("extcli.api.http.PROBE", 1_000)
    huge = answering(*[http_response("200 OK", "x" * 2_000)] * 50)

    extcli("doctor", "--url", huge, exits=7)
    extcli("wait", "--url", huge, "--timeout", "200ms", exits=7)
