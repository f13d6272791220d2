"""The example extension in Chromium, used as its README says."""

from __future__ import annotations

import re

import pytest

from support.browser import EXAMPLE, README_ADDRESS, ScriptOutput, browse_pages, run_once
from support.service import LiveServer


@pytest.fixture(scope="module")
def seen(running_live: LiveServer, tmp_path_factory: pytest.TempPathFactory) -> ScriptOutput:
    """What two viewers, a late one and the broadcaster saw."""
    return run_once(
        tmp_path_factory, "browser-example", lambda: browse_pages(tmp_path_factory, running_live, "browser_example.js")
    )


@pytest.mark.parametrize(("viewer", "own"), [("first", ["Dragon\n50%"]), ("second", ["Hydra\n50%"])])
def test_a_viewer_votes_and_sees_the_votes_of_all(seen: ScriptOutput, viewer: str, own: list[str]):
    assert {
        "question": "Which boss is next?",
        "options": ["Dragon\n50%", "Golem\n0%", "Hydra\n50%"],
        "pressed": own,
        "open": True,
        "note": "2 votes",
    } == seen[viewer]


def test_the_broadcaster_sees_the_votes_and_has_none(seen: ScriptOutput):
    assert (["Dragon\n50%", "Golem\n0%", "Hydra\n50%"], [], False) == (
        seen["live"]["options"],
        seen["live"]["pressed"],
        seen["live"]["open"],
    )


def test_who_comes_late_finds_the_poll(seen: ScriptOutput):
    assert ("Which boss is next?", "2 votes", True) == (
        seen["late"]["question"],
        seen["late"]["note"],
        seen["late"]["open"],
    )


def test_an_announcement_is_shown_to_all_viewers(seen: ScriptOutput):
    assert ["A raid begins at nine"] * 2 == seen["banners"]


def test_a_pin_links_a_game_and_a_wrong_one_is_explained(seen: ScriptOutput):
    assert "the PIN is wrong or has expired" == seen["linked"]["wrong"]
    assert (0, [401, 200]) == (seen["linked"]["problem"], seen["linked"]["status"])
    assert re.fullmatch("[A-Z0-9]{6}", seen["linked"]["shown"])


def test_a_stopped_poll_takes_no_votes_and_shows_them(seen: ScriptOutput):
    assert ("2 votes · closed", False) == (seen["closed"]["note"], seen["closed"]["open"])


def test_the_panel_fits_its_width(seen: ScriptOutput):
    assert 0 == seen["overflow"]


def test_nothing_complains_and_nothing_else_is_asked_for(seen: ScriptOutput):
    assert ([], []) == (seen["record"]["complaints"], seen["record"]["strangers"])
    assert ["400 POST /v1/e/validate_pin"] == seen["record"]["refusals"]


def test_the_version_and_addresses_of_its_readme_are_those_of_the_tests():
    readme = (EXAMPLE / "README.md").read_text()
    package = (EXAMPLE.parent.parent / "tests" / "sdk" / "package.json").read_text()

    assert {"2.4.18"} == set(re.findall(r"extensions-js[@-](\d+\.\d+\.\d+)", readme))
    assert '"@muxy/extensions-js": "2.4.18"' in package
    assert all(README_ADDRESS in (EXAMPLE / page).read_text() for page in ("panel.html", "live.html", "README.md"))
