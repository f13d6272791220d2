"""Token verification in production (Authentication 1-5; rulings A1, A2, A5)."""

from __future__ import annotations

import pytest

from support.authentication import authenticate
from support.service import (
    CLIENT_ID,
    PREVIOUS_SECRET,
    SECRET,
    LiveServer,
    in_production,
    live_server,
    real_seconds,
)
from support.socket_client import SocketClient


def soon() -> int:
    return real_seconds() + 600


def test_a_token_signed_with_the_previous_secret_is_accepted(production: LiveServer):
    statuses = [
        production.client("viewer", exp=soon(), key=key).get("user_info").status_code
        for key in (SECRET, PREVIOUS_SECRET)
    ]

    assert [200, 200] == statuses


def test_the_log_recommends_exp_once_per_extension(production: LiveServer, caplog: pytest.LogCaptureFixture):
    production.service.tokens._endless.clear()
    for number in range(3):
        production.client("backend", jti=f"{number}").get("user_info").raise_for_status()

    warnings = [record.message for record in caplog.records if "has no exp" in record.message]

    assert [f"{CLIENT_ID}: a backend token has no exp, so it never expires; add one when signing"] == warnings


@pytest.mark.parametrize("stage", ["production", "testing", None])
def test_a_token_of_another_stage_is_accepted(production: LiveServer, stage: str | None):
    assert 200 == production.client("viewer", exp=soon(), allowed_stage=stage).get("user_info").status_code


@pytest.mark.parametrize("claim", ["extension_id", "app_id"])
def test_the_extension_id_in_a_token_may_be_a_number(production: LiveServer, claim: str):
    statuses = [
        production.client("viewer", client_id="12345", exp=soon(), **{claim: named}).get("user_info").status_code
        for named in (12345, "12345", 54321)
    ]

    assert [200, 200, 401] == statuses


def test_a_token_issued_by_a_sandbox_gets_401_in_production(live: LiveServer, production: LiveServer):
    issued = live.client(None).post("authtoken", json={"app_id": CLIENT_ID, "role": "admin"}).json()["token"]

    assert 401 == production.bearer(issued).get("user_info").status_code


def test_tokens_of_the_service_outlive_a_restart(tmp_path):
    settings = in_production(data=f"sqlite:///{tmp_path}/data.db")
    with live_server(settings) as live:
        token = _access_token(live)

    with live_server(settings) as live:
        record = live.bearer(token).get("user_info").json()

    assert ("broadcaster", "777") == (record["role"], record["channel_id"])


def test_a_token_issued_by_another_service_gets_401(production: LiveServer, tmp_path):
    with live_server(in_production(data=f"sqlite:///{tmp_path}/other.db")) as live:
        token = _access_token(live)
        here = live.bearer(token).get("user_info").status_code

    assert [200, 401] == [here, production.bearer(token).get("user_info").status_code]


def _access_token(live: LiveServer) -> str:
    """Return a token that the service issues to a game of channel 777."""
    broadcaster = live.client("broadcaster", user="777", channel="777", exp=soon())
    with SocketClient(live) as game:
        return str(authenticate(game, jwt=broadcaster.headers["Authorization"].split()[1])["jwt"])
