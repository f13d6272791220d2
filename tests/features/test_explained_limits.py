"""Malformed HTTP and exceeded limits are explained."""

from __future__ import annotations

import re
import socket
from collections.abc import Iterator
from contextlib import suppress
from urllib.parse import urlsplit

import pytest

from emulator.config.settings import Limits, Settings
from support.explanations import id_of, latest, why
from support.service import CHANNEL, Client, LiveServer, live_server


@pytest.fixture(scope="module")
def limited() -> Iterator[LiveServer]:
    """A sandbox with small limits."""
    with live_server(Settings(limits=Limits(caller_rate=1, ids=1, namespaces=1, topics=1))) as live:
        yield live


@pytest.mark.parametrize(
    ("text", "rule", "held", "needed"),
    [
        (b"nonsense", "W4", "invalid HTTP request", "a valid HTTP request"),
        (b"GET /v1/e/vote HTTP/1.1\r\nHost: a\r\nHost: b", "gaps: Limits", "several host headers", "one host header"),
        (b"GET / HTTP/1.1" + b"\r\nX: y" * 101, "gaps: Limits", "101 headers", "at most 100 headers"),
        (b"GET / HTTP/1.1\r\nX: " + b"y" * 70_000, "gaps: Limits", "headers over 65536 bytes", "at most 65536 bytes"),
    ],
    ids=["invalid", "duplicate", "many", "long"],
)
def test_malformed_http_is_explained(live: LiveServer, text: bytes, rule: str, held: str, needed: str):
    answer = exchange(live, text + b"\r\n\r\n")

    explanation = why(live, re.findall(rb"x-request-id: (\S+)", answer)[0].decode())
    assert (rule, held) == (explanation["rule"], explanation["held"])
    assert needed in explanation["needed"]


@pytest.mark.slow
def test_a_request_that_does_not_arrive_is_explained():
    with live_server(Settings(limits=Limits(request_timeout=1))) as slow:
        exchange(slow, b"POST /v1/e/vote HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n")

        assert ("gaps: Limits", "an incomplete request after 1 s") == tuple(
            latest(slow)["explanation"][name] for name in ("rule", "held")
        )


def exchange(live: LiveServer, text: bytes) -> bytes:
    """Send bytes on a connection of their own, and return the answer."""
    with socket.create_connection(("127.0.0.1", urlsplit(live.url).port or 0), timeout=10) as wire:
        wire.sendall(text)
        answer = b""
        with suppress(ConnectionError):
            while data := wire.recv(65_536):
                answer += data
    return answer


def test_a_rate_is_explained(limited: LiveServer):
    client = limited.client("viewer", user="rate", channel=CHANNEL)
    answer = next(answer for _ in range(100) if (answer := client.get("vote")).status_code == 429)

    explanation = why(limited, id_of(answer))

    assert ("gaps: Limits", "requests from this caller above the rate") == (explanation["rule"], explanation["held"])
    assert explanation["needed"].startswith("the next request in ")


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
