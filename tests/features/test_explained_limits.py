"""Malformed HTTP is recorded, and explained as exceeded limits are."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from emulator.core.config.settings import Limits, Settings
from support.explanations import id_of, latest, why
from support.journal import entries_of
from support.service import CHANNEL, Client, LiveServer, live_server


@pytest.fixture(scope="module")
def limited() -> Iterator[LiveServer]:
    """A sandbox with small limits."""
    with live_server(Settings(limits=Limits(caller_rate=1, ids=1, namespaces=1, topics=1))) as live:
        yield live


@pytest.mark.parametrize(
    ("text", "status", "endpoint", "rule", "held"),
    [
        pytest.param(b"\x16\x03\x01 this is no HTTP", 400, "", "W4", "invalid HTTP", id="TLS"),
        pytest.param(b"FOO \xff HTTP/1.1\r\nHost: x", 400, "", "W4", "invalid HTTP", id="method"),
        pytest.param(b"GET /v1/e/vote HTTP/9.9 x", 400, "GET /v1/e/vote", "W4", "invalid HTTP", id="version"),
        pytest.param(b"GET / HTTP/1.1\r\nHost: a\r\nHost: b", 400, "GET /", "gaps: Limits", "several host", id="hosts"),
        pytest.param(b"GET / HTTP/1.1" + b"\r\nX: y" * 101, 431, "GET /", "gaps: Limits", "101 headers", id="many"),
        pytest.param(b"GET / HTTP/1.1\r\nX: " + b"y" * 70_000, 431, "GET /", "gaps: Limits", "65536 bytes", id="long"),
    ],
)
def test_malformed_http_gets_an_error_that_is_recorded_and_explained(
    live: LiveServer, text: bytes, status: int, endpoint: str, rule: str, held: str
):
    head, _, body = live.exchange(text + b"\r\n\r\n").decode().partition("\r\n\r\n")

    entry = entries_of(live, status=status)[-1]
    explanation = why(live, entry["id"])

    assert head.startswith(f"HTTP/1.1 {status} ")
    assert {"content-type: application/json", f"content-length: {len(body)}", f"x-request-id: {entry['id']}"} <= {
        *head.split("\r\n")
    }
    assert (endpoint, rule, entry["reason"]) == (entry["endpoint"], explanation["rule"], json.loads(body)["reason"])
    assert held in explanation["held"]


@pytest.mark.slow
def test_a_request_that_does_not_arrive_is_recorded_and_explained():
    with live_server(Settings(limits=Limits(request_timeout=1))) as slow:
        slow.exchange(b"POST /v1/e/vote HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n")

        (entry,), explanation = entries_of(slow, status=408), latest(slow)["explanation"]
        assert ("POST /v1/e/vote", "gaps: Limits") == (entry["endpoint"], explanation["rule"])


def test_used_up_limits_are_explained(limited: LiveServer):
    client, admin = (limited.client(role, user=role, channel=CHANNEL) for role in ("viewer", "admin"))
    rate = next(answer for _ in range(100) if (answer := client.get("vote")).status_code == 429)
    quota = [admin.post(f"json_store?id={name}", json={}) for name in ("one", "two")][-1]
    with Client(base_url=limited.url) as anyone:
        namespace = [anyone.get(f"/_ns/{name}/_emulator/live") for name in ("one", "two")][-1]

    explanations = [why(limited, id_of(each)) for each in (rate, quota, namespace)]

    assert ["gaps: Limits", "W10", "docs: Namespaces"] == [each["rule"] for each in explanations]
    assert explanations[0]["needed"].startswith("a wait of ")
    assert ["at most 1 ids", "fewer than 1"] == [each["needed"] for each in explanations[1:]]
