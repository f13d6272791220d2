"""The example extension in Chromium, used as its README says."""

from __future__ import annotations

import re

import pytest

from support.browser import EXAMPLE, README_ADDRESS, ScriptOutput, browse_pages, run_once
from support.service import LiveServer

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def result(running_live: LiveServer, tmp_path_factory: pytest.TempPathFactory) -> ScriptOutput:
    """Return what two viewers, a late viewer and the broadcaster see."""
    return run_once(
        tmp_path_factory, "browser-example", lambda: browse_pages(tmp_path_factory, running_live, "browser_example.js")
    )


@pytest.mark.parametrize(("viewer", "own"), [("first", ["Dragon\n50%"]), ("second", ["Hydra\n50%"])])
def test_a_viewer_votes_and_sees_all_votes(result: ScriptOutput, viewer: str, own: list[str]):
    assert {
        "question": "Which boss is next?",
        "options": ["Dragon\n50%", "Golem\n0%", "Hydra\n50%"],
        "pressed": own,
        "isOpen": True,
        "note": "2 votes",
    } == result[viewer]


def test_the_broadcaster_sees_the_votes_and_cannot_vote(result: ScriptOutput):
    assert (["Dragon\n50%", "Golem\n0%", "Hydra\n50%"], [], False) == (
        result["live"]["options"],
        result["live"]["pressed"],
        result["live"]["isOpen"],
    )


def test_a_late_viewer_sees_the_poll(result: ScriptOutput):
    assert ("Which boss is next?", "2 votes", True) == (
        result["late"]["question"],
        result["late"]["note"],
        result["late"]["isOpen"],
    )


def test_all_viewers_see_an_announcement(result: ScriptOutput):
    assert ["A raid begins at nine"] * 2 == result["banners"]


def test_a_pin_links_a_game_and_a_wrong_pin_shows_an_error(result: ScriptOutput):
    assert "the PIN is wrong or has expired" == result["linked"]["error"]
    assert (0, [401, 200]) == (result["linked"]["errorsLeft"], result["linked"]["status"])
    assert re.fullmatch("[A-Z0-9]{6}", result["linked"]["pin"])


def test_a_stopped_poll_shows_its_votes_and_accepts_no_more(result: ScriptOutput):
    assert ("2 votes · closed", False) == (result["closed"]["note"], result["closed"]["isOpen"])


def test_the_panel_has_no_horizontal_overflow(result: ScriptOutput):
    assert 0 == result["overflow"]


def test_pages_log_no_errors_and_contact_no_other_origin(result: ScriptOutput):
    assert ([], []) == (result["log"]["consoleErrors"], result["log"]["unexpectedOrigins"])
    assert ["400 POST /v1/e/validate_pin"] == result["log"]["errorResponses"]


def test_the_readme_has_the_sdk_version_and_addresses_of_the_tests():
    readme = (EXAMPLE / "README.md").read_text()
    package = (EXAMPLE.parent.parent / "tests" / "sdk" / "package.json").read_text()

    assert {"2.4.18"} == set(re.findall(r"extensions-js[@-](\d+\.\d+\.\d+)", readme))
    assert '"@muxy/extensions-js": "2.4.18"' in package
    assert all(README_ADDRESS in (EXAMPLE / page).read_text() for page in ("panel.html", "live.html", "README.md"))
