"""The published SDK in production, in Chromium, connected by the script of the example (ruling B7)."""

from __future__ import annotations

import json

import pytest

from support.browser import copy_pages, run_browser, serve_folder
from support.service import CHANNEL, CLIENT_ID, LiveServer, real_seconds


def authorizations(live: LiveServer, role: str, user: str) -> list[dict[str, str]]:
    """Return two authorizations of the platform's helper, with different tokens."""
    tokens = [
        live.client(role, user=user, channel=CHANNEL, opaque=f"U{user}", exp=real_seconds() + seconds)
        for seconds in (600, 1_200)
    ]
    headers = [each.headers["Authorization"].split()[1] for each in tokens]
    return [{"clientId": CLIENT_ID, "channelId": CHANNEL, "userId": f"U{user}", "token": each} for each in headers]


@pytest.mark.slow
@pytest.mark.long
def test_pages_receive_broadcasts_and_their_own_whispers_only(production: LiveServer, tmp_path):
    copy_pages(tmp_path, production.url)
    users = [authorizations(production, "broadcaster", CHANNEL), authorizations(production, "viewer", "5")]

    with serve_folder(tmp_path) as pages:
        result = run_browser("browser_production.js", pages, production.url, json.dumps(users))

    assert {"n": 1} in result["viewer"]["received"]["motd"]
    assert [{"n": 2}] == result["viewer"]["received"]["secret"]
    assert ["broadcast", "opened", "whisper-5", "whisper-U5"] == result["viewer"]["heard"]
    assert ["broadcast", "opened"] == result["broadcaster"]["heard"]
    assert [["?protocol=7"]] * 2 == [result[name]["urls"] for name in ("broadcaster", "viewer")]
    assert [3, 3] == [result[name]["vote"] for name in ("broadcaster", "viewer")]
    assert ([], []) == (result["log"]["consoleErrors"], result["log"]["unexpectedOrigins"])
