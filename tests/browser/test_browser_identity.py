"""The users that pages simulate without choosing one: the published SDK in Chromium, in two browser profiles."""

from __future__ import annotations

import json
import re
import subprocess
from typing import Any

import pytest

from extcli.config.settings import DEFAULT_CHANNEL
from support.browser import ScriptOutput, browse_pages, run_once
from support.program import PROGRAM
from support.service import LiveServer

pytestmark = pytest.mark.long

HELPER_CHANNEL = "777"
"""The channel that the helper's script element names in `frame.html`."""


@pytest.fixture(scope="module")
def result(running_live: LiveServer, tmp_path_factory: pytest.TempPathFactory) -> ScriptOutput:
    """Return the identities of pages, and the poll in which two of them voted as the command line shows it."""

    def produce() -> ScriptOutput:
        printed = run_extcli("connect", "js", "--channel", "888", "--url", running_live.url)
        more = {"printed.html": f'<!doctype html><link rel="icon" href="data:," />{printed}'}
        pages = browse_pages(tmp_path_factory, running_live, "browser_identity.js", more=more)
        return {
            **pages,
            "poll": json.loads(run_extcli("vote", "get", "lunch", "--url", running_live.url, "-o", "json")),
        }

    return run_once(tmp_path_factory, "browser-identity", produce)


def run_extcli(*args: str) -> str:
    return subprocess.run([PROGRAM, *args], capture_output=True, text=True, check=True, timeout=60).stdout


def viewer(user: str, channel: str = DEFAULT_CHANNEL) -> dict[str, Any]:
    return {"role": "viewer", "user": user, "opaque": f"U{user}", "channel": channel}


def test_each_browser_profile_is_another_viewer(result: ScriptOutput):
    users = [profile["user"] for profile in result["profiles"]]

    assert [viewer(user) for user in users] == result["profiles"]
    assert all(re.fullmatch(r"\d{9}", user) for user in users)
    assert users[0] != users[1]


def test_pages_of_one_profile_are_one_viewer_with_any_build_of_the_sdk(result: ScriptOutput):
    assert result["profiles"][0] == result["again"] == result["module"]


def test_the_command_line_shows_the_votes_of_both_profiles(result: ScriptOutput):
    assert (2, 3) == (result["poll"]["stats"]["count"], result["poll"]["stats"]["sum"])


def test_a_page_with_the_lines_of_connect_js_is_in_the_channel_that_they_name(result: ScriptOutput):
    assert {**result["profiles"][0], "channel": "888"} == result["printed"]


def test_pages_reach_the_sdk_as_muxy_and_as_its_default_export(result: ScriptOutput):
    assert [True, "function", True] == result["forms"]


def test_a_page_without_storage_is_another_viewer(result: ScriptOutput):
    user = result["withoutStorage"]["user"]

    assert viewer(user) == result["withoutStorage"]
    assert user not in [profile["user"] for profile in result["profiles"]]


def test_the_url_of_a_page_chooses_user_channel_and_role(result: ScriptOutput):
    assert viewer("42", "888") == result["chosen"]
    assert {"role": "broadcaster", "user": "888", "opaque": "U888", "channel": "888"} == result["broadcaster"]


def test_a_page_may_choose_its_user_and_its_url_takes_precedence(result: ScriptOutput):
    assert (viewer("6", "5"), viewer("7", "5")) == (result["own"], result["overOwn"])
    assert {"role": "broadcaster", "user": "5", "opaque": "U5", "channel": "5"} == result["starter"]


@pytest.mark.parametrize("shape", ["object", "class"])
def test_a_page_with_version_1_of_the_sdk_has_the_chosen_identity(result: ScriptOutput, shape: str):
    chosen, own, over_own = ["broadcaster", "888"], ["broadcaster", "5"], ["broadcaster", "888"]

    assert [["viewer", DEFAULT_CHANNEL], chosen, own, over_own] == result[shape]


def test_a_page_outside_a_frame_has_one_identity_with_the_helper(result: ScriptOutput):
    user = result["helper"]["sdk"]["user"]

    assert {"sdk": viewer(user, HELPER_CHANNEL)} | {"helper": viewer(user, HELPER_CHANNEL)} == result["helper"]
    assert re.fullmatch(r"\d{9}", user)
    assert {"sdk": viewer("42", "888"), "helper": viewer("42", "888")} == result["chosenHelper"]
    assert {"sdk": viewer("43", HELPER_CHANNEL), "helper": viewer("43", HELPER_CHANNEL)} == result["helperOverOwn"]


def test_pages_log_no_errors_and_contact_no_other_origin(result: ScriptOutput):
    assert ([], []) == (result["log"]["consoleErrors"], result["log"]["unexpectedOrigins"])
