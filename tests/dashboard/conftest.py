"""A browser, and services that hold nothing, something, or hostile names, for all tests of a file."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser

from support.filled_service import HOSTILE, PLAIN, filled_service
from support.pages import chromium
from support.service import LiveServer

CONTENTS = {"empty": (), "full": PLAIN, "hostile": HOSTILE}


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as browser:
        yield browser


@pytest.fixture(scope="module", params=CONTENTS)
def filled(request: pytest.FixtureRequest) -> Iterator[LiveServer]:
    """A service with each of the contents in turn. No test may change what it holds."""
    with filled_service(*CONTENTS[request.param]) as live:
        yield live


@pytest.fixture
def full() -> Iterator[LiveServer]:
    """A service of this test that holds something of every kind."""
    with filled_service(*PLAIN) as live:
        yield live
