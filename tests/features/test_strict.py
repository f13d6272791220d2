"""`serve --strict`: the rules of production, with the control API of the sandbox."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from emulator.core.config.environment import STRICT
from emulator.core.config.extensions import Extension
from emulator.core.config.settings import Settings
from emulator.core.parity import ENDPOINT
from features.test_parity_twin import REQUESTS, SEED, converse, run
from support.journal import entry_of
from support.parity_twin import twins
from support.pusher_client import PusherClient, pusher_channel
from support.service import CHANNEL, CLIENT_ID, SECRET, LiveServer, live_server, real_seconds

EXP = real_seconds() + 3_600


@pytest.fixture(scope="module")
def running_strict() -> Iterator[LiveServer]:
    with live_server(Settings(STRICT, extensions={CLIENT_ID: Extension(CLIENT_ID, (SECRET,))})) as live:
        yield live


@pytest.fixture
def strict(running_strict: LiveServer) -> LiveServer:
    running_strict.empty()
    return running_strict


@pytest.mark.slow
def test_a_strict_sandbox_responds_as_production_does():
    with twins(SEED, strict=True) as both:
        seen = run(both, REQUESTS)
        rules = httpx.get(f"{both.sandbox.url}/_emulator/parity").json()["rules"]

    assert set(seen) <= {"", ENDPOINT}  # the control API alone is not in production
    assert [] == rules


@pytest.mark.slow
def test_a_strict_sandbox_treats_games_as_production_does():
    with twins(SEED, strict=True) as both:
        seen = converse(both, REQUESTS // 8)

    assert {""} == set(seen)


@pytest.mark.slow
def test_a_strict_sandbox_treats_pages_as_production_does():
    seen = set()
    with twins(SEED, strict=True) as both:
        for _ in range(REQUESTS // 8):
            header = both.request().header
            replies = [subscription(live, header) for live in (both.sandbox, both.production)]
            assert replies[0] == replies[1], header
            seen.add(replies[0])
        rules = httpx.get(f"{both.sandbox.url}/_emulator/parity").json()["rules"]

    assert {("pusher_internal:subscription_succeeded", None), ("pusher:subscription_error", 401)} <= seen
    assert [] == rules


def subscription(live: LiveServer, header: str) -> tuple[str, int | None]:
    """Subscribe a page with a credential, and return the event and the status of the reply."""
    with PusherClient(live) as page:
        page.send("pusher:subscribe", {"auth": header, "channel": pusher_channel()})
        reply = page.reply()
    return reply["event"], reply["data"].get("status")


@pytest.mark.parametrize(
    ("changes", "hint"),
    [
        ({"key": b"a secret that no extension has, at all"}, None),
        ({"client_id": "my-extention"}, "the client id my-extention"),
        ({"key": b64encode(SECRET)}, "the token is signed with the base64 text"),
    ],
)
def test_other_tokens_are_refused(strict: LiveServer, changes: dict[str, Any], hint: str | None):
    answer = strict.client("viewer", **{"user": "1", "channel": CHANNEL, "exp": EXP, **changes}).get("vote")

    assert 401 == answer.status_code
    assert (hint or "") in answer.headers.get("x-emulator-hint", "")
    assert "x-emulator-production" not in answer.headers


def test_the_control_api_stays(strict: LiveServer):
    voter = strict.client("viewer", user="1", channel=CHANNEL, exp=EXP)
    answer = voter.post("vote", json={"value": 1})
    body = {"method": "GET", "path": "/v1/e/vote", "client_id": CLIENT_ID, "role": "viewer", "channel_id": CHANNEL}
    called = httpx.post(f"{strict.url}/_emulator/call", json=body).json()

    assert 404 == httpx.post(f"{strict.url}/v1/e/authtoken", json={"role": "viewer"}).status_code
    assert 200 == entry_of(strict, answer)["status"]
    assert (200, 1) == (called["status"], called["body"]["count"])
    assert "sandbox" == httpx.get(f"{strict.url}/_emulator/ready").json()["environment"]
    assert 200 == httpx.get(f"{strict.url}/_emulator/ui/polls", headers={"Accept": "text/html"}).status_code


def test_a_config_store_is_listed_although_it_never_expires(strict: LiveServer):
    strict.client("broadcaster", channel=CHANNEL, exp=EXP).post("channel_config", json={"a": 1}).raise_for_status()

    [row] = httpx.get(f"{strict.url}/_emulator/contents/stores").json()["rows"]
    assert ("channel_config", CHANNEL, None) == (row["id"], row["channel_id"], row["expires_at"])
    assert 1 == httpx.get(f"{strict.url}/_emulator/contents").json()["stores"]
