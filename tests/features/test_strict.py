"""`serve --strict`: the rules of production, with the control API of the sandbox."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from emulator.clock import MINUTE
from emulator.config.environment import STRICT
from emulator.config.extensions import Extension
from emulator.config.settings import Settings, read_settings
from emulator.errors import ConfigurationError
from emulator.parity.service import ENDPOINT
from features.test_parity_twin import REQUESTS, SEED, converse, run
from production.test_production_pages import credential, status_of
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


def test_a_valid_token_is_accepted(strict: LiveServer):
    assert 200 == strict.client("viewer", user="1", channel=CHANNEL, exp=EXP).get("vote").status_code


@pytest.mark.parametrize(
    ("changes", "hint"),
    [
        ({"key": b"a secret that no extension has, at all"}, None),
        ({"client_id": "my-extention"}, "the client id my-extention is not known; did you mean my-extension?"),
        (
            {"key": b64encode(SECRET)},
            "the token is signed with the base64 text of the secret; decode the secret before you sign",
        ),
    ],
)
def test_other_tokens_are_refused(strict: LiveServer, changes: dict[str, Any], hint: str | None):
    answer = strict.client("viewer", **{"user": "1", "channel": CHANNEL, "exp": EXP, **changes}).get("vote")

    assert (401, hint) == (answer.status_code, answer.headers.get("x-emulator-hint"))
    assert "x-emulator-production" not in answer.headers


def test_a_strict_sandbox_issues_no_tokens(strict: LiveServer):
    assert 404 == httpx.post(f"{strict.url}/v1/e/authtoken", json={"role": "viewer"}).status_code


def test_the_control_api_stays(strict: LiveServer):
    voter = strict.client("viewer", user="1", channel=CHANNEL, exp=EXP)
    answer = voter.post("vote", json={"value": 1})
    body = {"method": "GET", "path": "/v1/e/vote", "client_id": CLIENT_ID, "role": "viewer", "channel_id": CHANNEL}
    called = httpx.post(f"{strict.url}/_emulator/call", json=body).json()

    assert 200 == entry_of(strict, answer)["status"]
    assert (200, 1) == (called["status"], called["body"]["count"])
    assert "sandbox" == httpx.get(f"{strict.url}/_emulator/ready").json()["environment"]
    assert 200 == httpx.get(f"{strict.url}/_emulator/ui/polls", headers={"Accept": "text/html"}).status_code


@pytest.mark.parametrize(("production", "text"), [(False, "--strict needs --extensions FILE"), (True, "--strict: ")])
def test_settings_that_cannot_be_strict_are_named(production: bool, text: str, tmp_path: Path):
    (tmp_path / "e.toml").write_text('[extensions.a]\nsecrets = ["c2VjcmV0"]\n')
    with pytest.raises(ConfigurationError, match=text):
        read_settings(
            production=production, strict=True, data="sqlite://", extensions=tmp_path / "e.toml" if production else None
        )


def test_the_subscription_of_a_page_ends_with_its_token_even_after_a_reset(strict: LiveServer):
    auth = credential(exp=real_seconds() + 120)
    with PusherClient(strict) as page:
        assert 200 == status_of(page, auth=auth)
        strict.reset()

        strict.advance(3 * MINUTE)

        assert 401 == page.reply()["data"]["status"]
