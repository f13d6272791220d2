"""Probes: requests that a tool makes for itself. The journal has them, and leaves them out of what it lists."""

from __future__ import annotations

import json

import httpx
import pytest

from extcli.completion import Line, candidates, read_table
from support.pages import main_of
from support.program import http_response
from support.service import LiveServer

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


def test_completion_leaves_no_trace_in_the_listing(extcli, live: LiveServer):
    candidates(Line(read_table(), "extcli vote get "), {"EXTCLI_URL": live.url})

    assert [] == listed(extcli)
    assert ["GET /v1/e/polls?limit=1000&cursor=0"] == listed(extcli, "--probes")


def test_explain_without_an_id_skips_probes(extcli):
    extcli("vote", "cast", "lunch", "--value", "100", exits=4)
    extcli("vote", "cast", "lunch", "--value", "1", "-o", "table")  # its look at the definition is a 404

    assert "POST /v1/e/vote" == extcli("explain", "-o", "json").json["entry"]["name"]
    assert "POST /v1/e/vote" == extcli("logs", "show", "latest", "-o", "json").json["endpoint"]
    for options in (("--count", "=0"), ("--count", "2", "--probes")):
        extcli("expect", "journal", "GET /v1/e/vote_config", *options, exits=0 if "=0" in options else 7)
    extcli("expect", "parity", exits=0)


def test_the_stream_leaves_probes_out(live: LiveServer, viewer):
    httpx.get(f"{live.url}/v1/e/user_info", headers=PROBE)
    viewer("5551").get("vote?id=rps")
    lines = httpx.get(f"{live.url}/_emulator/journal/stream?since=0&timeout=0&path=/v1/e/").text.splitlines()

    assert ["GET /v1/e/vote"] == [each["endpoint"] for each in map(json.loads, lines) if "number" in each]


def test_the_dashboard_shows_probes_on_request(live: LiveServer):
    httpx.get(f"{live.url}/v1/e/user_info", headers=PROBE)
    screen = f"{live.url}/_emulator/ui/requests"

    assert "user_info" not in main_of(screen)
    assert "user_info" in main_of(f"{screen}?probes=true")


# Responses of other programs


@pytest.fixture
def huge(answering, monkeypatch) -> str:
    """The URL of a program whose responses are larger than a probe reads."""
    monkeypatch.setattr("extcli.api.http.PROBE", 1_000)
    return answering(*[http_response("200 OK", "x" * 2_000)] * 50)


def test_a_response_that_is_too_large_is_no_service(extcli, huge: str):
    extcli("doctor", "--url", huge, exits=7)
    extcli("wait", "--url", huge, "--timeout", "200ms", exits=7)
