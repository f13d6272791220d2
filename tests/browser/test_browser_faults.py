"""The published SDK in Chromium, on pages of a service with faults."""

from __future__ import annotations

from typing import Any

import pytest

from support.browser import ScriptOutput, browse_pages, run_once
from support.service import LiveServer

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def result(running_live: LiveServer, tmp_path_factory: pytest.TempPathFactory) -> ScriptOutput:
    """Return how votes ended and which broadcasts arrived, for each effect."""
    return run_once(
        tmp_path_factory, "browser-faults", lambda: browse_pages(tmp_path_factory, running_live, "browser_faults.js")
    )


@pytest.fixture
def votes(result: ScriptOutput) -> dict[str, Any]:
    """Return how a vote ended, for each effect."""
    return dict(result["votes"])


def test_a_call_that_gets_a_faults_response_rejects_with_the_reason(result: ScriptOutput, votes: dict[str, Any]):
    assert ("Fault", 1) == (votes["status"]["reason"], votes["status"]["hits"])
    assert ["503 POST /v1/e/vote"] == result["log"]["errorResponses"]


def test_a_delayed_call_resolves_late(votes: dict[str, Any]):
    assert 1 == votes["delay"]["count"]
    assert 300 <= votes["delay"]["ms"]


@pytest.mark.parametrize(
    ("effect", "error"),
    [("drop", "EMPTY_RESPONSE"), ("reset", "CONNECTION_RESET"), ("truncate", "CONTENT_LENGTH_MISMATCH")],
)
def test_a_call_with_an_incomplete_response_rejects(
    result: ScriptOutput, votes: dict[str, Any], effect: str, error: str
):
    assert "error" == votes[effect]["reason"]
    assert 1 <= votes[effect]["hits"], "a browser may repeat a request whose connection was lost"
    assert f"Failed to load resource: net::ERR_{error}" in result["log"]["consoleErrors"]


def test_a_stalled_call_rejects_when_the_fault_is_removed(votes: dict[str, Any]):
    assert votes["stall"]["wasSilent"]
    assert "error" == votes["stall"]["reason"]


def test_calls_resolve_again_without_faults(votes: dict[str, Any]):
    assert 1 == votes["after"]["count"]


@pytest.mark.parametrize(
    ("effect", "heard", "frames"),
    [
        ("lose", ["two 2", "end 3"], ["two", "end"]),
        ("double", ["one 4", "end 5"], ["one", "one", "end"]),  # the SDK ignores a message that it had before
        ("reorder", ["one 7", "one 6", "end 8"], ["one", "one", "end"]),
        ("delay", ["end 10", "one 9"], ["end", "one"]),
    ],
)
def test_a_page_receives_the_broadcasts_that_a_fault_does_not_lose(result: ScriptOutput, effect: str, heard, frames):
    assert {"events": heard, "frames": frames, "hits": 1} == result[effect]


def test_a_page_connects_again_after_a_refused_handshake_and_gets_broadcasts(result: ScriptOutput):
    assert {"events": ["end 11"], "hits": 1} == result["refused"]
