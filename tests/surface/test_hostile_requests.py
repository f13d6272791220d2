"""Requests at the limits of size, depth and number: each is answered, none with a failure of the service.

`benchmarks/holds.py` measures how long they hold up other requests.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from emulator.core.environment import PRODUCTION, AnonymousLimits
from emulator.core.extensions import Extension
from emulator.core.settings import Limits, Settings
from support.service import LiveServer, live_server

BENCHMARKS = str(Path(__file__).parents[2] / "benchmarks")
REFUSALS = {400, 404, 413, 431}
sys.path.insert(0, BENCHMARKS)
import common  # noqa: E402
import holds  # noqa: E402

sys.path.remove(BENCHMARKS)


@pytest.fixture(scope="module")
def production() -> Iterator[LiveServer]:
    limits = Limits(caller_rate=0, client_rate=0, anonymous=AnonymousLimits())
    extensions = {common.CLIENT_ID: Extension(common.CLIENT_ID, secrets=(common.SECRET,))}
    with live_server(Settings(environment=PRODUCTION, extensions=extensions, limits=limits)) as live:
        yield live


@pytest.mark.slow
@pytest.mark.parametrize("name", holds.REQUESTS)
def test_a_request_at_a_limit_gets_a_response_or_a_refusal(production: LiveServer, name: str):
    address: Any = ("127.0.0.1", urlsplit(production.url).port)

    response = holds.exchange(address, holds.REQUESTS[name])

    assert int(response[9:12]) in REFUSALS | {200}


@pytest.mark.slow
@pytest.mark.parametrize("name", holds.MESSAGES)
def test_a_message_at_a_limit_has_a_reply(production: LiveServer, name: str):
    address: Any = ("127.0.0.1", urlsplit(production.url).port)

    replies = holds.talk(address, holds.frame(holds.MESSAGES[name]))

    assert 2 == len(replies)
    assert all(b'"status":5' not in reply for reply in replies)
