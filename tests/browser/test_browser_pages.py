"""The published SDK in Chromium, on pages of another origin (rulings B5, B7): with faults, in production, on https."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from extcli.running.certificates import own_tls_context
from support.authority import STATE
from support.browser import browse_pages, copy_pages, run_browser, serve_folder
from support.process import server_process
from support.service import CHANNEL, CLIENT_ID, Client, LiveServer, real_seconds

pytestmark = pytest.mark.long


def test_calls_and_messages_of_pages_resolve_as_on_the_platform(live: LiveServer, tmp_path: Path):
    result = browse_pages(tmp_path, live, "browser_pages.js")
    calls = result["calls"]
    # Pages need no debugging address
    chosen = [("viewer", "5551"), ("broadcaster", "777"), ("admin", "9001"), ("viewer", "42")]

    assert [{"role": role, "id": user} for role, user in chosen] == result["users"]

    # Calls of every method resolve
    assert (3, 1, 1) == (calls["vote"]["vote"], calls["vote"]["count"], calls["vote"]["specific"][3])
    assert [{}, {"team": "red"}] == calls["viewerState"]
    assert calls["offset"] < 5_000
    assert (1, 3) == (calls["poll"]["count"], calls["poll"]["mean"])
    assert [{}, {"data": []}] == calls["clear"]
    assert [("5551", 3)] == [(each["identifier"], each["value"]) for each in calls["log"]["result"]]
    assert ({}, {}) == (calls["patched"], calls["codes"])

    # Pages can read error responses
    assert ["role is not authorized", "Invalid PIN", "Invalid body"] == [
        calls[name]["reason"] for name in ("forbidden", "wrongPin", "getWithBody")
    ]
    assert ["403 POST /v1/e/channel_state", "400 POST /v1/e/validate_pin", "400 GET /v1/e/broadcast"] == (
        result["log"]["errorResponses"]
    )

    # Pages receive each other's messages
    both = [["motd", "hi"], ["motd", 10_000]]

    assert both == sorted(result["messages"]["viewer"], key=str) == sorted(result["messages"]["broadcaster"], key=str)
    assert [[{"for": "you"}, "secret"]] == result["messages"]["whisper"]

    # Pages receive votes and writes to stores
    vote, *stores = result["automaticEvents"]

    assert ("heard", 1, 2, "vote_update:heard") == (
        vote[0]["id"],
        vote[0]["stats"]["count"],
        vote[0]["stats"]["sum"],
        vote[1],
    )
    assert [
        [{"id": "motd", "value": {"text": "hi"}}, "json_store_update:motd"],
        [{"round": 5}, "channel_state_update"],
        [{"theme": "light"}, "channel_config_update"],
    ] == stores

    # The script of a namespace connects to that namespace
    assert 0 == result["inNamespace"]

    # The script redirects only the SDK's addresses
    assert [
        "http://service/v1/e/vote?id=a",
        "http://service/v1/e/vote",
        "http://service/pusher/app/key/1/2/xhr_streaming",
        "https://api.muxy.io.example/v1/e/vote",
        "https://info.muxy.io/",
        "own/file.json?of=https://api.muxy.io/v1/e/vote",
        "ws://service/app/key?protocol=7",
        "wss://ws.example/app/key",
    ] == result["addresses"]

    # The browser sends preflights for every method
    assert {
        "POST /v1/e/authtoken content-type",
        "GET /v1/e/user_info authorization",
        "POST /v1/e/vote authorization",
        "POST /v1/e/pusher_broadcast authorization",
        "PATCH /v1/e/extension_viewer_state authorization",
        "PUT /v1/e/codes authorization",
    } <= set(result["log"]["preflights"])

    # Pages log no errors and contact no other origin
    assert ([], []) == (result["log"]["consoleErrors"], result["log"]["unexpectedOrigins"])


def test_calls_end_as_each_fault_says_and_a_refused_page_connects_again(live: LiveServer, tmp_path: Path):
    result = browse_pages(tmp_path, live, "browser_faults.js")
    votes = result["votes"]
    # A call that gets a faults response rejects with the reason
    assert ("Fault", 1) == (votes["status"]["reason"], votes["status"]["hits"])
    assert ["503 POST /v1/e/vote"] == result["log"]["errorResponses"]

    # A delayed call resolves late
    assert 1 == votes["delay"]["count"]
    assert 300 <= votes["delay"]["ms"]

    # A call with an incomplete response rejects
    for effect, error in [
        ("drop", "EMPTY_RESPONSE"),
        ("reset", "CONNECTION_RESET"),
        ("truncate", "CONTENT_LENGTH_MISMATCH"),
    ]:
        assert "error" == votes[effect]["reason"]
        assert 1 <= votes[effect]["hits"], "a browser may repeat a request whose connection was lost"
        assert f"Failed to load resource: net::ERR_{error}" in result["log"]["consoleErrors"]

    # A stalled call rejects when the fault is removed
    assert votes["stall"]["wasSilent"]
    assert "error" == votes["stall"]["reason"]

    # Calls resolve again without faults
    assert 1 == votes["after"]["count"]

    # A page connects again after a refused handshake and gets broadcasts
    assert {"events": [1], "hits": 1} == result["refused"]


def test_the_page_shows_and_calls_every_operation_within_its_policy(running_live: LiveServer, stranger: Client):
    paths = stranger.get("/schema/openapi.json").json()["paths"]

    result = run_browser("browser_viewer.js", running_live.url, running_live.url)

    assert sum(len(item) for item in paths.values()) == result["operations"]
    assert "200" == result["status"].split()[0]
    assert {"consoleErrors": [], "errorResponses": [], "unexpectedOrigins": [], "preflights": []} == result["log"]


def authorizations(live: LiveServer, role: str, user: str) -> list[dict[str, str]]:
    """Return two authorizations of the platform's helper, with different tokens."""
    tokens = [
        live.client(role, user=user, channel=CHANNEL, opaque=f"U{user}", exp=real_seconds() + seconds)
        for seconds in (600, 1_200)
    ]
    headers = [each.headers["Authorization"].split()[1] for each in tokens]
    return [{"clientId": CLIENT_ID, "channelId": CHANNEL, "userId": f"U{user}", "token": each} for each in headers]


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


def test_a_page_on_https_calls_the_service_without_an_error_in_the_console(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    if not shutil.which("certutil"):
        pytest.skip("needs certutil of libnss3-tools")
    monkeypatch.setenv(STATE, str(tmp_path / "state"))
    monkeypatch.setenv("HOME", str(tmp_path))
    (pages := tmp_path / "pages").mkdir()
    with server_process("--tls") as served, serve_folder(pages, own_tls_context("")) as site:
        served.process.stdout.readline()
        command = served.process.stdout.readline().partition(": ")[2]
        subprocess.run(["sh", "-c", command], check=True, timeout=60)
        copy_pages(pages, served.url)

        result = run_browser("browser_tls.js", site, served.url)

    assert {"voted": 1, "heard": {"text": "hi"}} == {name: result[name] for name in ("voted", "heard")}
    log = result["log"]
    assert ([], [], []) == (log["consoleErrors"], log["errorResponses"], log["unexpectedOrigins"])
