"""A project of `extcli new` in the rig, in Chromium: the three pages and the backend play one round."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from support.browser import BUNDLE, SDK, serve_folder
from support.program import PROGRAM, SECRET_BASE64
from support.service import LiveServer

pytestmark = pytest.mark.long


def run(folder: Path, *command: str | Path, **variables: str) -> str:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("EXTCLI_")}
    environment = {**kept, "HOME": str(folder), **variables}
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=True, timeout=60
    ).stdout.strip()


def test_the_pages_and_the_backend_of_a_new_project_play_a_round(live: LiveServer, page: Page, tmp_path: Path) -> None:
    if not BUNDLE.is_file():
        pytest.skip("needs the packages that `make test` installs")
    run(tmp_path, PROGRAM, "new", "boss", "--backend", "python", "--url", live.url)
    project = tmp_path / "boss"
    (project / "node_modules").symlink_to((SDK / "node_modules").resolve())
    (project / "my.secret").write_text(SECRET_BASE64)
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.set_viewport_size({"width": 1400, "height": 1000})
    with serve_folder(project) as url:
        shown = f"{url}/pages/panel.html"
        options = ("--live", "live.html", "--config", "config.html")
        page.goto(run(project, PROGRAM, "rig", shown, *options, EXTCLI_URL=live.url))
        first, second, live_page, config = (
            page.frame_locator(f"#frame-{name}") for name in ("1", "2", "live", "config")
        )
        expect(second.get_by_role("status")).to_have_text("No round yet.")

        config.get_by_label("Question").fill("Who is next?")
        config.get_by_role("button", name="Save").click()
        expect(config.get_by_role("status")).to_have_text("Saved. It applies to the next round.")
        live_page.get_by_role("button", name="Start a round").click()
        expect(first.get_by_role("heading")).to_have_text("Who is next?")
        first.get_by_role("button", name="Hydra").click()
        second.get_by_role("button", name="Hydra").click()
        expect(second.get_by_role("status")).to_contain_text("You voted for Hydra.")
        printed = run(project, sys.executable, "backend.py", EXTCLI_URL=live.url, EXTCLI_SECRET_FILE="my.secret")

        assert "'winner': 'Hydra'" in printed
        for frame in (first, second, live_page):
            expect(frame.get_by_role("status")).to_have_text("Hydra wins.")
            expect(frame.get_by_role("alert")).to_have_text("")
    assert [] == errors
