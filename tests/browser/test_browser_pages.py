"""The published SDK in Chromium, on pages of another origin, connected by the service's script only (ruling B5)."""

from __future__ import annotations

from typing import Any

import pytest

from support.browser import ScriptOutput, browse_pages, run_once
from support.service import LiveServer

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def result(running_live: LiveServer, tmp_path_factory: pytest.TempPathFactory) -> ScriptOutput:
    """Return the results of calls and messages on the pages."""
    return run_once(
        tmp_path_factory, "browser-pages", lambda: browse_pages(tmp_path_factory, running_live, "browser_pages.js")
    )


@pytest.fixture
def calls(result: ScriptOutput) -> dict[str, Any]:
    """Return what each call resolved or rejected with."""
    return dict(result["calls"])


def test_pages_need_no_debugging_address(result: ScriptOutput):
    chosen = [("viewer", "5551"), ("broadcaster", "777"), ("admin", "9001"), ("viewer", "42")]

    assert [{"role": role, "id": user} for role, user in chosen] == result["users"]


def test_calls_of_viewers_resolve_with_the_fields_that_pages_read(calls: dict[str, Any]):
    assert (3, 1, 1) == (calls["vote"]["vote"], calls["vote"]["count"], calls["vote"]["specific"][3])
    assert {} == calls["accumulate"]
    assert [{}, {"team": "red"}] == calls["viewerState"]
    assert calls["offset"] < 5_000


def test_calls_of_broadcasters_resolve_with_the_fields_that_pages_read(calls: dict[str, Any]):
    assert (1, 3) == (calls["poll"]["count"], calls["poll"]["mean"])
    assert {"data": [{"key": "blue", "score": 1}]} == calls["rank"]
    assert [{}, {"data": []}] == calls["clear"]
    assert [("U5551", {"rating": 5})] == [(each["opaque_user_id"], each["data"]) for each in calls["buffer"]["data"]]
    assert [{}, {"round": 4}] == calls["channelState"]
    assert [{}, {"channel": {"theme": "dark"}, "extension": {}}] == calls["config"]
    assert 6 == len(calls["pin"])


def test_calls_of_admins_resolve_with_the_fields_that_pages_read(calls: dict[str, Any]):
    assert ({}, {"5551": {"xp": 1}}) == (calls["patched"], calls["states"])
    assert [("5551", 3)] == [(each["identifier"], each["value"]) for each in calls["log"]["result"]]
    assert "0" == calls["users"]["next"]
    assert {"twitch_id": "5551"} in calls["users"]["results"]
    assert ({}, {"eligible": [0]}) == (calls["codes"], calls["eligible"])


def test_pages_can_read_error_responses(result: ScriptOutput, calls: dict[str, Any]):
    assert ["role is not authorized", "Invalid PIN", "Invalid body"] == [
        calls[name]["reason"] for name in ("forbidden", "wrongPin", "getWithBody")
    ]
    assert ["403 POST /v1/e/channel_state", "400 POST /v1/e/validate_pin", "400 GET /v1/e/broadcast"] == (
        result["log"]["errorResponses"]
    )


def test_pages_receive_each_others_messages(result: ScriptOutput):
    both = [["motd", "hi"], ["motd", 10_000]]

    assert both == sorted(result["messages"]["viewer"], key=str) == sorted(result["messages"]["broadcaster"], key=str)
    assert [[{"for": "you"}, "secret"]] == result["messages"]["whisper"]


def test_pages_receive_votes_and_writes_to_stores(result: ScriptOutput):
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


def test_the_script_of_a_namespace_connects_to_that_namespace(result: ScriptOutput):
    assert 0 == result["inNamespace"]


def test_the_script_redirects_only_the_sdks_addresses(result: ScriptOutput):
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


def test_the_browser_sends_preflights_for_every_method(result: ScriptOutput):
    assert {
        "POST /v1/e/authtoken content-type",
        "GET /v1/e/user_info authorization",
        "POST /v1/e/vote authorization",
        "POST /v1/e/pusher_broadcast authorization",
        "PATCH /v1/e/extension_viewer_state authorization",
        "PUT /v1/e/codes authorization",
    } <= set(result["log"]["preflights"])


def test_pages_log_no_errors_and_contact_no_other_origin(result: ScriptOutput):
    assert ([], []) == (result["log"]["consoleErrors"], result["log"]["unexpectedOrigins"])
