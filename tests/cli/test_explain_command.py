"""`extcli explain`: what happened, why, and what to do; and the hint that leads to it."""

from __future__ import annotations

import json
import re

import httpx
import pytest

from emulator.contract import rules
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
    assert "What to do: Send a token of the role broadcaster (with extcli: `--as broadcaster`)." == " ".join(
        step.split()
    )


def test_plain_output_is_a_fact_per_line(extcli, refused: str):
    facts = dict(extcli("explain", refused, "-o", "plain").rows)

    assert {
        "id": refused,
        "status": "403",
        "rule": "spec: Authentication",
        "held": "role viewer",
        "needed": "role broadcaster, admin or backend",
    }.items() <= facts.items()


def test_explain_reports_that_a_call_was_not_refused(extcli):
    trace = extcli("vote", "get", "-v").stderr

    result = extcli("explain", re.findall(r"x-request-id: (\S+)", trace)[-1], "-o", "table")

    assert "GET /v1/e/vote: 200 OK" in result.stdout
    assert "It was not refused." in result.stdout


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
    result = extcli("explain", "A11", exits=4)

    assert "A1" in result.stderr.splitlines()[1]
    assert "only an emulator" not in result.stderr
    assert not HINT.search(result.stderr)


def test_a_service_that_is_not_a_sandbox_gets_no_hint(extcli, answering):
    body = json.dumps({"reason": "Value out of bounds", "info": "value: 100 is not within -99 to 99"})

    result = extcli(
        "vote", "cast", "--value", "100", "--url", answering(http_response("400 Bad Request", body)), exits=4
    )

    assert not HINT.search(result.stderr)


def test_errors_as_json_have_the_request_id_but_no_hint(extcli):
    result = extcli("vote", "cast", "--value", "100", "-o", "json")

    assert "request_id" in json.loads(result.stderr)["error"]
    assert "extcli explain" not in result.stderr


def test_the_latest_refused_preflight_and_what_production_would_do_are_explained(extcli, live: LiveServer):
    headers = {"Origin": "https://page.example", "Access-Control-Request-Headers": "x-panel"}
    httpx.options(f"{live.url}/v1/e/vote", headers=headers)
    id = live.client("viewer", user="1").get("vote").headers["x-request-id"]  # its token has no exp

    assert "x-panel" in extcli("explain", "-o", "table").stdout
    assert ["production", "refuse; rule=exp"] in extcli("explain", id, "-o", "plain").rows
    assert "Production: refuse (rule exp)." in extcli("explain", id, "-o", "table").stdout
