"""Requests that are as expensive as their size allows: each is answered, none with a failure of the service.

`make pauses` measures how long they hold up other requests.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any
from urllib.parse import urlsplit

import pytest

from emulator.config.environment import PRODUCTION, AnonymousLimits
from emulator.config.extensions import Extension
from emulator.config.settings import Limits, Settings
from support.service import LiveServer, live_server

ROOT = Path(__file__).parents[2]
PLACES = [str(ROOT / "tests" / "endurance"), str(ROOT / "benchmarks")]
REFUSALS = {400, 401, 403, 404, 405, 413, 431}
KINDS = [
    "small requests of viewers",
    "small requests of others",
    "bodies of 64 KiB",
    "patches",
    "patches of own records",
    "stores written",
    pytest.param("PATCH of many users", marks=pytest.mark.long),
    "broadcasts of 64 KiB",
    "credentials",
    "queries and paths of 60 KiB",
    "headers of 60 KiB",
    "uploads of codes and users",
    "bodies over the limit",
]


@pytest.fixture(scope="module")
def benchmark() -> Iterator[ModuleType]:
    sys.path[:0] = PLACES
    yield importlib.import_module("pauses")
    del sys.path[:2]


@pytest.fixture(scope="module")
def production(benchmark: Any) -> Iterator[LiveServer]:
    client_id, secret = benchmark.hostile.CLIENT_ID, benchmark.hostile.SECRET
    limits = Limits(caller_rate=0, client_rate=0, anonymous=AnonymousLimits())
    settings = Settings(
        environment=PRODUCTION, extensions={client_id: Extension(client_id, secrets=(secret,))}, limits=limits
    )
    with live_server(settings) as live:
        yield live


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_hostile_requests_get_a_response_or_a_refusal(production: LiveServer, benchmark: Any, kind: str):
    client = benchmark.HttpClient(("127.0.0.1", urlsplit(production.url).port))
    _, make = benchmark.HTTP[kind]

    for _ in range(8):
        client.send(make())

    assert 8 == sum(client.statuses.values())
    assert REFUSALS | {200} >= client.statuses.keys()


@pytest.mark.slow
@pytest.mark.parametrize("role", ["viewer", "broadcaster", "admin"])
@pytest.mark.parametrize("name", ["large_messages", "huge_messages", "small_messages"])
def test_hostile_messages_have_a_reply_each(production: LiveServer, benchmark: Any, name: str, role: str):
    client = benchmark.SocketClient(("127.0.0.1", urlsplit(production.url).port), role=role)
    make = getattr(benchmark.hostile, name)

    for _ in range(6):
        client.send(make())
        reply = client.message()
        while b'"action":"update"' in reply[:200]:
            reply = client.message()
        assert b'"status":5' not in reply
    client.close()
