"""Malformed HTTP is recorded, and explained as exceeded limits are."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from emulator.config.settings import Limits, Settings
from support.explanations import id_of, latest, why
from support.journal import entries_of
from support.service import CHANNEL, Client, LiveServer, live_server


@pytest.fixture(scope="module")
def limited() -> Iterator[LiveServer]:
    """A sandbox with small limits."""
    with live_server(Settings(limits=Limits(caller_rate=1, ids=1, namespaces=1, topics=1))) as live:
        yield live


INVALID = ("Bad Request", "W4", "invalid HTTP request", "a valid HTTP request")
TWO_HOSTS = ("Duplicate header", "gaps: Limits", "several host headers", "one host header")
MANY = ("Headers too large", "gaps: Limits", "101 headers", "at most 100 headers")
LONG = ("Headers too large", "gaps: Limits", "headers over 65536 bytes", "at most 65536 bytes")


@pytest.mark.parametrize(
    ("text", "status", "endpoint", "expected"),
    [
        pytest.param(b"nonsense", 400, "", INVALID, id="text"),
        pytest.param(b"\x16\x03\x01 this is no HTTP", 400, "", INVALID, id="TLS"),
        pytest.param(b"FOO \xff HTTP/1.1\r\nHost: x", 400, "", INVALID, id="method"),
        pytest.param(b"GET /v1/e/vote HTTP/9.9 x", 400, "GET /v1/e/vote", INVALID, id="version"),
        pytest.param(b"GET /v1/e/vote HTTP/1.1\r\nHost: a\r\nHost: b", 400, "GET /v1/e/vote", TWO_HOSTS, id="hosts"),
        pytest.param(b"GET /v1/e/vote HTTP/1.1" + b"\r\nX: y" * 101, 431, "GET /v1/e/vote", MANY, id="many"),
        pytest.param(b"GET / HTTP/1.1\r\nX: " + b"y" * 70_000, 431, "GET /", LONG, id="long"),
    ],
)
@pytest.mark.ruling("W4")
def test_malformed_http_gets_an_error_that_is_recorded_and_explained(
    live: LiveServer, text: bytes, status: int, endpoint: str, expected: tuple[str, ...]
):
    head, _, body = live.exchange(text + b"\r\n\r\n").decode().partition("\r\n\r\n")

    entry = entries_of(live, status=status)[-1]
    explanation = why(live, entry["id"])

    assert head.startswith(f"HTTP/1.1 {status} ")
    assert {"content-type: application/json", f"content-length: {len(body)}", f"x-request-id: {entry['id']}"} <= {
        *head.split("\r\n")
    }
    found = (json.loads(body)["reason"], explanation["rule"], explanation["held"])
    assert (endpoint, *expected[:3]) == (entry["endpoint"], *found)
    assert expected[3] in explanation["needed"]


@pytest.mark.slow
def test_a_request_that_does_not_arrive_is_recorded_and_explained():
    with live_server(Settings(limits=Limits(request_timeout=1))) as slow:
        slow.exchange(b"POST /v1/e/vote HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n")

        (entry,), explanation = entries_of(slow, status=408), latest(slow)["explanation"]
        assert ("POST /v1/e/vote", "gaps: Limits", "an incomplete request after 1 s") == (
            entry["endpoint"], explanation["rule"], explanation["held"],
        )  # fmt: skip


def test_a_rate_is_explained(limited: LiveServer):
    client = limited.client("viewer", user="rate", channel=CHANNEL)
    answer = next(answer for _ in range(100) if (answer := client.get("vote")).status_code == 429)

    explanation = why(limited, id_of(answer))

    assert ("gaps: Limits", "more requests from this caller than the rate allows") == (
        explanation["rule"],
        explanation["held"],
    )
    assert explanation["needed"].startswith("a wait of ")


def test_a_quota_of_ids_is_explained(limited: LiveServer):
    admin = limited.client("admin", user="quota", channel=CHANNEL)
    admin.post("json_store?id=one", json={}).raise_for_status()

    explanation = why(limited, id_of(admin.post("json_store?id=two", json={})))

    assert "gaps: Limits" == explanation["rule"]
    assert "1 ids" in explanation["held"]
    assert "at most 1 ids" == explanation["needed"]


def test_a_limit_of_namespaces_is_explained(limited: LiveServer):
    with Client(base_url=limited.url) as client:
        client.get("/_ns/one/_emulator/live").raise_for_status()

        explanation = why(limited, id_of(client.get("/_ns/two/_emulator/live")))

    assert ("docs: Namespaces", "1 open namespaces", "fewer than 1") == (
        explanation["rule"], explanation["held"], explanation["needed"],
    )  # fmt: skip
