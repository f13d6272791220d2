"""Lifetimes that the model of `tests/surface` does not have: stores and trivia in production, games' tokens, and `exp`.

Each one millisecond before its end, and at its end (Limits; rulings A1, S4, T1, T3).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from emulator.core.clock import DAY, MINUTE, SECOND, WEEK, Clock
from support.service import CHANNEL, CLIENT_ID, Client, LiveServer, in_production, live_server
from support.socket_client import SocketClient
from support.trivia import create_question, ids, team

START = 2_000_000_000
"""The Unix time in seconds at which every test starts."""
LAST_SECOND = 10**11 - 1
"""The last Unix time in seconds; from 1e11 up, a number is in milliseconds."""


@pytest.fixture(scope="module")
def running_production() -> Iterator[LiveServer]:
    """A production service with a clock that tests can move, as it has no control API."""
    with live_server(in_production(), clock=Clock()) as live:
        yield live


@pytest.fixture
def production(running_production: LiveServer) -> LiveServer:
    """Production without data, whose clock stands still at the start."""
    return emptied(running_production)


@pytest.fixture(params=["running_live", "running_production"])
def either(request: pytest.FixtureRequest) -> LiveServer:
    """The sandbox and then production, without data, whose clock stands still at the start."""
    return emptied(request.getfixturevalue(request.param))


def emptied(live: LiveServer) -> LiveServer:
    live.run(live.service.control.reset())
    live.service.clock.freeze(True)
    at(live, 0)
    return live


def at(live: LiveServer, ms: int) -> None:
    """Set the clock to `ms` after the start."""
    live.service.clock.set(START * SECOND + ms)


def authenticate(live: LiveServer, **credential: str) -> dict[str, Any]:
    """Return the tokens that a game gets, none if it is refused."""
    with SocketClient(live) as game:
        return dict(game.request("authenticate", data={"client_id": CLIENT_ID, **credential}).get("data", {}))


def backend_of(live: LiveServer) -> Client:
    return live.client("backend", user="9", channel=CHANNEL, exp=LAST_SECOND)


@pytest.mark.parametrize("scope", ["extension", "channel", "viewer", "extension_viewer", "extension_hidden"])
def test_state_in_production_lives_30_days_after_its_last_write(production: LiveServer, scope: str):
    backend, store, last_write = backend_of(production), f"{scope}_state", 30 * DAY - 1
    backend.post(store, json={"a": 1}).raise_for_status()
    at(production, last_write)
    backend.patch(store, json={"b": 2}).raise_for_status()

    seen = []
    for instant in (30 * DAY - 1, 30 * DAY):
        at(production, last_write + instant)
        seen.append(backend.get(store).json())

    assert [{"a": 1, "b": 2}, {}] == seen


def test_trivia_in_production_lives_30_days(production: LiveServer):
    backend = backend_of(production)
    create_question(backend)
    backend.post("team_membership").raise_for_status()

    seen = []
    for instant in (30 * DAY - 1, 30 * DAY):
        at(production, instant)
        seen.append((ids(backend), team(backend)))

    assert [(["q1"], CHANNEL), ([], "")] == seen


@pytest.mark.parametrize("store", ["extension_config", "channel_config"])
def test_config_in_production_never_expires(production: LiveServer, store: str):
    backend = backend_of(production)
    backend.post(store, json={"a": 1}).raise_for_status()

    production.service.clock.set(LAST_SECOND * SECOND - 1)

    assert {"a": 1} == backend.get(store).json()


def test_a_pin_an_access_token_and_a_refresh_token_of_a_game_end(either: LiveServer):
    broadcaster = either.client("broadcaster", user=CHANNEL, channel=CHANNEL, exp=LAST_SECOND)
    pin = broadcaster.post("link/pin").raise_for_status().json()["pin"]
    pair = authenticate(either, pin=pin)
    game = either.bearer(pair["jwt"])

    works = []
    for end, is_valid in (
        (5 * MINUTE, lambda: bool(authenticate(either, pin=pin))),
        (WEEK, lambda: game.get("user_info").status_code == 200),
        (365 * DAY, lambda: bool(authenticate(either, refresh=pair["refresh"]))),
    ):
        for instant in (end - 1, end):
            at(either, instant)
            works.append(is_valid())

    assert [True, False] * 3 == works


def test_a_token_is_valid_until_one_millisecond_before_exp(either: LiveServer):
    client = either.client("viewer", user="1", channel=CHANNEL, exp=START + 60)

    seen = []
    for ms in (-1, 0, 1, -1):
        at(either, MINUTE + ms)
        seen.append(client.get("vote").status_code)

    assert [200, 401, 401, 200] == seen
    at(either, MINUTE)
    assert "token expired" in client.get("user_info").json()["info"]


@pytest.mark.parametrize("role", ["viewer", "broadcaster", "admin", "backend"])
def test_a_sandbox_token_expires_after_30_minutes(running_live: LiveServer, role: str):
    live, body = emptied(running_live), {"extension_id": CLIENT_ID, "channel_id": CHANNEL, "role": role}
    with Client(base_url=live.url) as stranger:
        client = live.bearer(stranger.post("/v1/e/authtoken", json=body).raise_for_status().json()["token"])

    seen = []
    for ms in (-1, 0):
        at(live, 30 * MINUTE + ms)
        seen.append(client.get("user_info").status_code)

    assert [200, 401] == seen
