"""No screen shows a secret: not of requests, and not of what the service holds."""

from __future__ import annotations

import httpx
import pytest

from emulator.core.config.extensions import Extension
from emulator.core.config.settings import Settings
from emulator.dashboard.pages import screens
from support.codes import define, grant, redeem
from support.pages import fetched
from support.service import CLIENT_ID, SECRET, LiveServer, live_server

CODE = "CODE-WITH-23-CHARS-ABCD"


@pytest.fixture(scope="module")
def planted() -> list[str]:
    """The text of every screen of a service that has seen each kind of secret, after the secrets."""
    extensions = {CLIENT_ID: Extension(CLIENT_ID, (SECRET,))}
    with live_server(Settings(extensions=extensions)) as live:
        secrets = plant(live)
        numbers = range(1, httpx.get(f"{live.url}/_emulator/journal").json()["mark"] + 1)
        entries = [fetched(f"{live.url}/_emulator/ui/requests?entry={number}").text for number in numbers]
        pages = [fetched(f"{live.url}/_emulator/ui/{screen}").text for screen in screens()]
    return [text for text in (*entries, *pages) for secret in secrets if secret in text]


def plant(live: LiveServer) -> list[str]:
    """Make requests with secrets in credentials, bodies, responses and queries; return the secrets."""
    viewer = live.client("viewer", user="1", channel="777")
    token = viewer.headers["Authorization"].split()[1]
    viewer.post("vote", params={"id": "a", "token": token}, json={"value": 1}).raise_for_status()
    viewer.post("vote", json={"value": token})
    viewer.get(f"nothing?jwt={token}")
    body = {"client_id": CLIENT_ID, "app_id": CLIENT_ID, "channel_id": "777", "role": "viewer"}
    issued = viewer.post("authtoken", json=body).raise_for_status().json()["token"]
    pin = viewer.post("pin", json={"identifier": CLIENT_ID}).raise_for_status().json()
    broadcaster = live.client("broadcaster", user="777", channel="777")
    broadcaster.post("validate_pin", json={"pin": pin["pin"]}).raise_for_status()
    broadcaster.post("validate_pin", json={"pin": "WRONG1"})
    link = broadcaster.post("link/pin").raise_for_status().json()["pin"]
    backend = live.client("backend")
    define(backend, [CODE])
    grant(backend, "U1", prizes=[0])
    assert CODE in str(redeem(viewer))
    return [SECRET.decode(), token, issued, pin["pin"], pin["token"], link, "WRONG1", CODE]


def test_no_screen_and_no_entry_shows_a_secret(planted: list[str]):
    assert [] == planted
