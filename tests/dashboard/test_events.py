"""The event stream of an open page."""

from __future__ import annotations

import httpx
import pytest

from emulator.dashboard.stream import GONE
from support.pages import following
from support.service import LiveServer


@pytest.fixture
def overview(live: LiveServer) -> str:
    return f"{live.url}/_emulator/ui/overview"


def test_a_stream_resumes_without_what_the_page_shows(live: LiveServer, overview: str):
    with following(overview) as stream:
        shown, _ = stream.read()
    with following(overview, shown) as stream:
        live.client("viewer", user="1", channel="777").post("vote", json={"value": 1})
        identifier, data = stream.read()
        while "Busiest poll" not in data:  # the vote came between the content and the frame of the first event
            identifier, data = stream.read()

    assert shown != identifier


def test_a_stream_says_so_when_its_namespace_ends(live: LiveServer):
    address = f"{live.url}/_ns/short/_emulator/ui/overview/events"
    with httpx.stream("GET", address, timeout=60) as stream:
        chunks = stream.iter_raw()
        next(chunks)
        httpx.delete(f"{live.url}/_ns/short").raise_for_status()
        text = b"".join(chunks)

    assert text.endswith(GONE)
