"""Probes: requests that a tool makes for itself. The journal has them, and leaves them out of what it lists."""

from __future__ import annotations

import json

import httpx
import pytest

from extcli.api.http import Http
from extcli.completion.shells import candidates
from extcli.errors import Unreachable
from support.pages import main_of
from support.program import http_response
from support.service import Client, LiveServer

PROBE = {"x-request-id": "probe-1"}


def listed(extcli, *options: str) -> list[str]:
    """Return the requests that `extcli logs` lists."""
    requests = [row[2] for row in extcli("logs", *options, "-o", "plain").rows]
    return [each for each in requests if each != "POST /_emulator/reset"]


@pytest.mark.parametrize(
    ("command", "asked", "probes"),
    [
        ("vote cast lunch --value 1 -o table", ["POST /v1/e/vote?id=lunch"], {"authtoken", "vote_config?id=lunch"}),
        ("vote define lunch --prompt ?", ["POST /v1/e/vote_config"], {"authtoken", "vote_config?id=lunch"}),
        (
            "vote rm lunch --as backend --all-channels --yes",
            ["DELETE /v1/e/vote?id=lunch"],
            {"authtoken", "polls?cursor=0"},
        ),
        ("vote list", ["GET /v1/e/polls?cursor=0"], {"authtoken"}),
        ("token sandbox", [], {"authtoken"}),
        ("doctor", [], {"clock", "authtoken", "polls?cursor=0", "faults"}),
    ],
)
def test_logs_lists_the_users_requests_but_no_probes(extcli, command: str, asked: list[str], probes: set[str]):
    extcli(*command.split())

    assert asked == listed(extcli)
    others = {each.rpartition("/")[2] for each in listed(extcli, "--probes") if each not in asked}
    assert probes == others


def test_logs_lists_votes_from_a_file_but_not_the_probe_before(extcli, lines):
    extcli("vote", "cast", "lunch", "--from", lines("user,value", "U1,1", "U2,2", name="ballots.csv"))

    assert ["POST /v1/e/vote?id=lunch"] * 2 == listed(extcli)


def test_completion_leaves_no_trace_in_the_listing(extcli):
    candidates("extcli vote get ", {"EXTCLI_URL": _url(extcli)})

    assert [] == listed(extcli)
    assert ["GET /v1/e/polls?limit=1000&cursor=0"] == listed(extcli, "--probes")


def test_explain_without_an_id_skips_probes(extcli):
    refused = extcli("vote", "cast", "lunch", "--value", "100")
    extcli("vote", "cast", "lunch", "--value", "1", "-o", "table")  # its look at the definition is a 404

    assert 4 == refused.exit_code
    assert "POST /v1/e/vote" == extcli("explain", "-o", "json").json["entry"]["name"]


def test_explain_explains_a_probe_by_its_id(extcli, live: LiveServer):
    httpx.get(f"{live.url}/v1/e/vote_config?id=none", headers=PROBE)

    assert 401 == extcli("explain", "probe-1", "-o", "json").json["entry"]["status"]


def test_a_refused_request_for_a_token_names_the_command_that_explains_it(extcli):
    refused = extcli("vote", "get", "lunch", "--client-id", "x" * 300)

    hint = refused.stderr.splitlines()[-1].split()
    assert ["extcli", "explain"] == hint[:2]
    assert "POST /v1/e/authtoken" == extcli(*hint[1:], "-o", "json").json["entry"]["name"]


def test_the_latest_entry_is_not_a_probe(extcli, viewer, live: LiveServer):
    viewer("5551").post("vote?id=rps", json={"value": 2})
    httpx.get(f"{live.url}/v1/e/vote_config?id=rps", headers=PROBE)

    assert "POST /v1/e/vote" == extcli("logs", "show", "latest", "-o", "json").json["endpoint"]


def test_expect_does_not_count_probes(extcli, live: LiveServer):
    httpx.get(f"{live.url}/v1/e/user_info", headers=PROBE)

    assert 0 == extcli("expect", "journal", "GET /v1/e/user_info", "--count", "=0").exit_code
    assert 0 == extcli("expect", "journal", "GET /v1/e/user_info", "--count", "1", "--probes").exit_code


def test_the_journal_selects_probes_by_a_parameter_or_an_id(live: LiveServer, admin: Client):
    httpx.get(f"{live.url}/v1/e/user_info", headers=PROBE)

    def count(query: str) -> int:
        return len(httpx.get(f"{live.url}/_emulator/journal?path=user_info&{query}").json()["entries"])

    assert [0, 0, 1, 1] == [count(query) for query in ("probes=", "probes=false", "probes=true", "id=probe-1")]
    refused = httpx.get(f"{live.url}/_emulator/journal?probes=yes")
    assert (400, "probes: 'yes' is not one of true, false") == (
        refused.status_code,
        refused.json()["errors"][0]["detail"],
    )


def test_the_stream_leaves_probes_out(live: LiveServer, viewer):
    httpx.get(f"{live.url}/v1/e/user_info", headers=PROBE)
    viewer("5551").get("vote?id=rps")
    lines = httpx.get(f"{live.url}/_emulator/journal/stream?since=0&timeout=0&path=/v1/e/").text.splitlines()

    assert ["GET /v1/e/vote"] == [each["endpoint"] for each in map(json.loads, lines) if "number" in each]


def test_parity_does_not_count_probes(extcli):
    extcli("token", "sandbox")

    assert 0 == extcli("expect", "parity").exit_code


def test_the_dashboard_shows_probes_on_request(live: LiveServer):
    httpx.get(f"{live.url}/v1/e/user_info", headers=PROBE)
    screen = f"{live.url}/_emulator/ui/requests"

    assert "user_info" not in main_of(screen)
    assert "user_info" in main_of(f"{screen}?probes=true")


def _url(extcli) -> str:
    return extcli("config", "get", "url", "-o", "plain").stdout.strip()


# Responses of other programs


@pytest.fixture
def huge(answering, monkeypatch) -> str:
    """The URL of a program whose responses are larger than a probe reads."""
    monkeypatch.setattr("extcli.api.bodies.PROBE", 1_000)
    return answering(*[http_response("200 OK", "x" * 2_000)] * 50)


def test_doctor_stops_reading_a_response_that_is_too_large(extcli, huge: str):
    result = extcli("doctor", "--url", huge, exits=7)

    assert f"{huge} is not an extension service; it answered over 1,000 bytes" in result.stdout


def test_wait_treats_a_response_that_is_too_large_as_not_ready(extcli, huge: str):
    result = extcli("wait", "--url", huge, "--timeout", "200ms", exits=7)

    assert (
        "answers, but is not ready\n  its response is too large: over 1,000 bytes\n  check that --url" in result.stderr
    )


def test_the_body_of_a_probe_must_end_within_its_time(live: LiveServer):
    http = Http(live.url, timeout=10, trace=None)
    try:
        with pytest.raises(Unreachable, match="in time"), http.stream("GET", "/_emulator/ready", within=0) as answer:
            answer.read()
    finally:
        http.close()
