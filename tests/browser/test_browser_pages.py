"""The published SDK in Chromium, on pages of another origin that the service's script alone leads to it."""

from __future__ import annotations

from typing import Any

import pytest

from support.browser import ScriptOutput, browse_pages, run_once
from support.service import LiveServer


@pytest.fixture(scope="module")
def seen(running_live: LiveServer, tmp_path_factory: pytest.TempPathFactory) -> ScriptOutput:
    """What calls and messages on the pages came to."""
    return run_once(
        tmp_path_factory, "browser-pages", lambda: browse_pages(tmp_path_factory, running_live, "browser_pages.js")
    )


@pytest.fixture
def calls(seen: ScriptOutput) -> dict[str, Any]:
    """What calls resolved with, or rejected with."""
    return dict(seen["calls"])


def test_pages_load_without_a_debugging_address_whatever_their_own_address_says(seen: ScriptOutput):
    unsaid, queried = {"role": "viewer", "id": "12345678"}, {"role": "viewer", "id": "42"}
    three = [{"role": role, "id": id} for role, id in (("viewer", "5551"), ("broadcaster", "777"), ("admin", "9001"))]

    assert [*three, unsaid, queried] == seen["who"]


def test_viewers_calls_resolve_with_what_pages_read(calls: dict[str, Any]):
    assert (3, 1, 1) == (calls["vote"]["vote"], calls["vote"]["count"], calls["vote"]["specific"][3])
    assert {} == calls["accumulate"]
    assert [{}, {"team": "red"}] == calls["viewerState"]
    assert calls["offset"] < 5_000


def test_broadcasters_calls_resolve_with_what_pages_read(calls: dict[str, Any]):
    assert (1, 3) == (calls["poll"]["count"], calls["poll"]["mean"])
    assert {"data": [{"key": "blue", "score": 1}]} == calls["rank"]
    assert [{}, {"data": []}] == calls["clear"]
    assert [("U5551", {"rating": 5})] == [(each["opaque_user_id"], each["data"]) for each in calls["buffer"]["data"]]
    assert [{}, {"round": 4}] == calls["channelState"]
    assert [{}, {"channel": {"theme": "dark"}, "extension": {}}] == calls["config"]
    assert 6 == len(calls["pin"])


def test_admins_calls_resolve_with_what_pages_read(calls: dict[str, Any]):
    assert ({}, {"5551": {"xp": 1}}) == (calls["patched"], calls["states"])
    assert [("5551", 3)] == [(each["identifier"], each["value"]) for each in calls["log"]["result"]]
    assert "0" == calls["users"]["next"]
    assert {"twitch_id": "5551"} in calls["users"]["results"]
    assert ({}, {"eligible": [0]}) == (calls["codes"], calls["eligible"])


def test_a_refusal_can_be_read_by_the_page(seen: ScriptOutput, calls: dict[str, Any]):
    assert ["role is not authorized", "Invalid PIN", "Invalid body"] == [
        calls[name]["reason"] for name in ("refused", "wrongPin", "bodyOfGet")
    ]
    assert ["403 POST /v1/e/channel_state", "400 POST /v1/e/validate_pin", "400 GET /v1/e/broadcast"] == (
        seen["record"]["refusals"]
    )


def test_pages_hear_each_other(seen: ScriptOutput):
    both = [["motd", "hi"], ["motd", 10_000]]

    assert both == sorted(seen["messages"]["ofViewer"], key=str) == sorted(seen["messages"]["ofBroadcaster"], key=str)
    assert [[{"for": "you"}, "secret"]] == seen["messages"]["whisper"]


def test_a_page_that_loads_the_script_of_a_namespace_is_in_that_namespace(seen: ScriptOutput):
    assert 0 == seen["inNamespace"]


def test_only_what_the_sdk_calls_is_led_to_the_service(seen: ScriptOutput):
    assert [
        "http://service/v1/e/vote?id=a",
        "http://service/v1/e/vote",
        "http://service/pusher/app/key/1/2/xhr_streaming",
        "https://api.muxy.io.example/v1/e/vote",
        "https://info.muxy.io/",
        "own/file.json?of=https://api.muxy.io/v1/e/vote",
        "ws://service/app/key?protocol=7",
        "wss://ws.example/app/key",
    ] == seen["addresses"]


def test_preflights_are_really_made_for_every_method(seen: ScriptOutput):
    assert {
        "POST /v1/e/authtoken content-type",
        "GET /v1/e/user_info authorization",
        "POST /v1/e/vote authorization",
        "POST /v1/e/pusher_broadcast authorization",
        "PATCH /v1/e/extension_viewer_state authorization",
        "PUT /v1/e/codes authorization",
    } <= set(seen["record"]["preflights"])


def test_nothing_complains_and_nothing_else_is_asked_for(seen: ScriptOutput):
    assert ([], []) == (seen["record"]["complaints"], seen["record"]["strangers"])
