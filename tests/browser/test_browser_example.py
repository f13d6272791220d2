"""The example extension in Chromium, used as its README says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from support.browser import EXAMPLE, README_ADDRESS, browse_pages
from support.service import LiveServer

pytestmark = pytest.mark.long


def test_the_example_extension_works_as_its_readme_says(live: LiveServer, tmp_path: Path):
    result = browse_pages(tmp_path, live, "browser_example.js")
    # A viewer votes and sees all votes
    for viewer, own in [("first", ["Dragon\n50%"]), ("second", ["Hydra\n50%"])]:
        assert {
            "question": "Which boss is next?",
            "options": ["Dragon\n50%", "Golem\n0%", "Hydra\n50%"],
            "pressed": own,
            "isOpen": True,
            "note": "2 votes",
        } == result[viewer]

    # The broadcaster sees the votes and cannot vote
    assert (["Dragon\n50%", "Golem\n0%", "Hydra\n50%"], [], False) == (
        result["live"]["options"],
        result["live"]["pressed"],
        result["live"]["isOpen"],
    )

    # A late viewer sees the poll
    assert ("Which boss is next?", "2 votes", True) == (
        result["late"]["question"],
        result["late"]["note"],
        result["late"]["isOpen"],
    )

    # All viewers see an announcement
    assert ["A raid begins at nine"] * 2 == result["banners"]

    # A PIN links a game and a wrong PIN shows an error
    assert "the PIN is wrong or has expired" == result["linked"]["error"]
    assert (0, [401, 200]) == (result["linked"]["errorsLeft"], result["linked"]["status"])
    assert re.fullmatch("[A-Z0-9]{6}", result["linked"]["pin"])

    # A stopped poll shows its votes and accepts no more
    assert ("2 votes · closed", False) == (result["closed"]["note"], result["closed"]["isOpen"])

    # The panel has no horizontal overflow
    assert 0 == result["overflow"]

    # Pages log no errors and contact no other origin
    assert ([], []) == (result["log"]["consoleErrors"], result["log"]["unexpectedOrigins"])
    assert ["400 POST /v1/e/validate_pin"] == result["log"]["errorResponses"]


def test_the_readme_has_the_sdk_version_and_addresses_of_the_tests():
    readme = (EXAMPLE / "README.md").read_text()
    package = (EXAMPLE.parent.parent / "tests" / "sdk" / "package.json").read_text()

    assert {"2.4.18"} == set(re.findall(r"extensions-js[@-](\d+\.\d+\.\d+)", readme))
    assert '"@muxy/extensions-js": "2.4.18"' in package
    assert all(README_ADDRESS in (EXAMPLE / page).read_text() for page in ("panel.html", "live.html", "README.md"))
