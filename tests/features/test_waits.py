"""`GET /_emulator/wait` answers when a condition is met (operations, Controlling)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from support.service import CHANNEL, CLIENT_ID, Client, LiveServer

Wait = Callable[..., Any]


@pytest.fixture
def wait(stranger: Client) -> Wait:
    """Wait for a condition on channel 777, by default not at all; returns the answer."""

    def wait(subject: str, id: str = "", *, timeout: int = 0, **parameters: object) -> Any:
        scope = {"client_id": CLIENT_ID, "channel_id": CHANNEL}
        query = {"for": subject, "id": id, "timeout": timeout, **scope, **parameters}
        return stranger.get("/_emulator/wait", params=query).raise_for_status().json()

    return wait


def test_a_condition_that_is_true_answers_at_once(wait: Wait, viewer):
    viewer().post("vote", json={"value": 3})

    outcome = wait("poll", timeout=60_000)

    assert (True, {"count": "at least 1"}, {"count": 1}) == (outcome["met"], outcome["wanted"], outcome["found"])


def test_at_the_timeout_the_condition_is_not_met(wait: Wait):
    outcome = wait("poll", timeout=20)

    assert (False, {"count": 0}, []) == (outcome["met"], outcome["found"], outcome["changes"])


def test_every_answer_of_the_sandbox_carries_the_mark(live: LiveServer, stranger: Client, viewer):
    voted = viewer().post("vote", json={"value": 3})
    marks = [
        int(answer.headers["x-emulator-mark"])
        for answer in (voted, stranger.get("/_emulator/clock"), stranger.get("/none"), viewer().get("user_info"))
    ]

    assert 1 < marks[0]
    assert [marks[0]] * 4 == marks
