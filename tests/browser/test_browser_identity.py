"""The users that pages simulate without choosing one: the published SDK in Chromium, in two browser profiles."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from extcli.config.settings import DEFAULT_CHANNEL
from support.browser import browse_pages
from support.program import PROGRAM
from support.service import LiveServer

pytestmark = pytest.mark.long

HELPER_CHANNEL = "777"
"""The channel that the helper's script element names in `frame.html`."""


def run_extcli(*args: str) -> str:
    return subprocess.run([PROGRAM, *args], capture_output=True, text=True, check=True, timeout=60).stdout


def viewer(user: str, channel: str = DEFAULT_CHANNEL) -> dict[str, Any]:
    return {"role": "viewer", "user": user, "opaque": f"U{user}", "channel": channel}


def test_pages_that_choose_no_user_are_one_viewer_of_each_browser_profile(live: LiveServer, tmp_path: Path):
    printed = run_extcli("connect", "js", "--channel", "888", "--url", live.url)
    more = {"printed.html": f'<!doctype html><link rel="icon" href="data:," />{printed}'}
    result = browse_pages(tmp_path, live, "browser_identity.js", more=more)
    poll = json.loads(run_extcli("vote", "get", "lunch", "--url", live.url, "-o", "json"))
    # Each browser profile is another viewer
    users = [profile["user"] for profile in result["profiles"]]

    assert [viewer(user) for user in users] == result["profiles"]
    assert all(re.fullmatch(r"\d{9}", user) for user in users)
    assert users[0] != users[1]

    # Pages of one profile are one viewer with any build of the SDK
    assert result["profiles"][0] == result["again"] == result["module"]

    # The command line shows the votes of both profiles
    assert (2, 3) == (poll["stats"]["count"], poll["stats"]["sum"])

    # A page with the lines of connect js is in the channel that they name
    assert {**result["profiles"][0], "channel": "888"} == result["printed"]

    # Pages reach the SDK as muxy and as its default export
    assert [True, "function", True] == result["forms"]

    # A page without storage is another viewer
    user = result["withoutStorage"]["user"]

    assert viewer(user) == result["withoutStorage"]
    assert user not in [profile["user"] for profile in result["profiles"]]

    # The url of a page chooses user channel and role
    assert viewer("42", "888") == result["chosen"]
    assert {"role": "broadcaster", "user": "888", "opaque": "U888", "channel": "888"} == result["broadcaster"]

    # A page may choose its user and its url takes precedence
    assert (viewer("6", "5"), viewer("7", "5")) == (result["own"], result["overOwn"])
    assert {"role": "broadcaster", "user": "5", "opaque": "U5", "channel": "5"} == result["starter"]

    # A page with version 1 of the SDK has the chosen identity
    chosen, own, over_own = ["broadcaster", "888"], ["broadcaster", "5"], ["broadcaster", "888"]
    assert [["viewer", DEFAULT_CHANNEL], chosen, own, over_own] == result["object"]
    assert over_own == result["class"]

    # A page outside a frame has one identity with the helper
    user = result["helper"]["sdk"]["user"]

    assert {"sdk": viewer(user, HELPER_CHANNEL)} | {"helper": viewer(user, HELPER_CHANNEL)} == result["helper"]
    assert re.fullmatch(r"\d{9}", user)
    assert {"sdk": viewer("42", "888"), "helper": viewer("42", "888")} == result["chosenHelper"]
    assert {"sdk": viewer("43", HELPER_CHANNEL), "helper": viewer("43", HELPER_CHANNEL)} == result["helperOverOwn"]

    # Pages log no errors and contact no other origin
    assert ([], []) == (result["log"]["consoleErrors"], result["log"]["unexpectedOrigins"])
