"""`extcli explain`: what happened, why, and what to do; and the hint that leads to it."""

from __future__ import annotations

import json
import re
import subprocess
import sys

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


def test_without_an_argument_the_latest_refusal_is_explained(extcli, refused: str):
    extcli("vote", "get")

    assert refused == extcli("explain", "-o", "json").json["entry"]["id"]


def test_explain_reports_that_there_is_no_refusal(extcli):
    result = extcli("explain", "-o", "table")

    assert (0, "the journal has no refused request\n") == (result.exit_code, result.stdout)


def test_a_refusal_is_explained_in_three_paragraphs(extcli, refused: str):
    what, why, step = extcli("explain", refused, "-o", "table").stdout.split("\n\n")

    assert what.startswith("DELETE /v1/e/vote: 403 Forbidden\nrole is not authorized: the role viewer may not do this")
    assert refused in what
    assert why.startswith(
        "Why: The role may not do this (rule spec: Authentication).\n"
        "  held    role viewer\n"
        "  needed  role broadcaster, admin or backend\n"
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


def test_explain_says_what_production_would_have_done(extcli, live: LiveServer):
    id = live.client("viewer", user="1").get("vote").headers["x-request-id"]  # its token has no exp

    paragraphs = extcli("explain", id, "-o", "table").stdout.split("\n\n")

    assert ["production", "refuse; rule=exp"] in extcli("explain", id, "-o", "plain").rows
    assert paragraphs[-1].startswith("Production: refuse (rule exp).\nProduction requires `exp`")
    assert "Sign tokens with `exp`" in paragraphs[-1]


@pytest.mark.parametrize(("name", "id"), [("A1", "A1"), ("trivia", "gaps: Trivia"), ("stage", "stage")])
def test_a_rule_is_explained_without_a_service(extcli, name: str, id: str):
    rule = rules.rules()[id]

    result = extcli("explain", name, "-o", "json", "--url", "http://127.0.0.1:1", exits=0)

    assert rule["text"] == result.json["rule"]["text"]


def test_a_rule_is_printed_with_the_place_of_its_documentation(extcli):
    lines = extcli("explain", "stage", "-o", "table").stdout.splitlines()

    assert "stage (docs/guide/parity.md#rules)" == lines[0]
    assert any(line.startswith("What to do: Sign a token") for line in lines)


@pytest.mark.parametrize("id", sorted(rules.rules()))
def test_every_rule_can_be_explained(extcli, id: str):
    assert id == extcli("explain", id, "-o", "json").json["rule"]["id"]


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


def test_production_gets_no_hint(extcli, production: LiveServer):
    result = extcli("vote", "get", "--url", production.url, env={"EXTCLI_TOKEN": "a.b.c"}, exits=4)

    assert not HINT.search(result.stderr)


def test_errors_as_json_have_the_request_id_but_no_hint(extcli):
    result = extcli("vote", "cast", "--value", "100", "-o", "json")

    assert "request_id" in json.loads(result.stderr)["error"]
    assert "extcli explain" not in result.stderr


@pytest.mark.slow
def test_the_explanation_of_a_rule_imports_nothing_of_the_service():
    script = "import sys; from extcli.main import main; main(['explain', 'A1']); print(*sys.modules, file=sys.stderr)"
    command = [sys.executable, "-c", script]
    names = set(subprocess.run(command, capture_output=True, text=True, check=True).stderr.split())

    assert "extcli.commands.checks.explain" in names
    assert {"emulator", "emulator.contract"} >= {
        ".".join(name.split(".")[:2]) for name in names if name.split(".")[0] == "emulator"
    }
    assert not {"httpx", "litestar", "msgspec"} & names
