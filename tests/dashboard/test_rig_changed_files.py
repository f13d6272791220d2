"""The rig shows files as they are now, also those that the browser would take from its cache, in Chromium."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from dashboard.rig_pages import Log, frame, log, page, rig
from support.browser import serve_folder
from support.service import LiveServer

__all__ = ("log", "page")
pytestmark = [pytest.mark.slow, pytest.mark.long]

DAY = 86_400
"""Seconds. A browser keeps a file without an expiry for a tenth of the file's age."""


@pytest.fixture
def folder(live: LiveServer, tmp_path: Path) -> Path:
    """Pages of two days ago: `panel.html`, whose script is `panel.js`."""
    (tmp_path / "panel.html").write_text(
        f'<p id="text">old page</p><p id="script"></p>'
        f'<script src="{live.url}/_emulator/sdk.js"></script><script src="panel.js"></script>'
    )
    (tmp_path / "panel.js").write_text("document.getElementById('script').textContent = 'old script'")
    for file in tmp_path.iterdir():
        os.utime(file, (time.time() - 2 * DAY,) * 2)
    return tmp_path


@pytest.fixture
def pages(folder: Path) -> Iterator[str]:
    with serve_folder(folder) as url:
        yield url


def change(file: Path, old: str, new: str) -> None:
    """Replace the file in one step, so that no page gets half of it."""
    changed = file.with_suffix(".changed")
    changed.write_text(file.read_text().replace(old, new))
    changed.replace(file)


def expect_texts(page: Page, **texts: str) -> None:
    for number in "12":
        for name, text in texts.items():
            expect(page.frame_locator(f"#frame-{number}").locator(f"#{name}")).to_have_text(text)


@pytest.mark.parametrize("name", ["panel.html", "panel.js"])
def test_each_frame_shows_a_changed_file_at_once_and_after_a_reload_of_the_rig(
    live: LiveServer, folder: Path, pages: str, page: Page, log: Log, name: str
):
    is_page = name == "panel.html"
    changed = {"text": "new page", "script": "old script"} if is_page else {"text": "old page", "script": "new script"}
    page.goto(rig(live, url=f"{pages}/panel.html", viewers="2"))
    expect_texts(page, text="old page", script="old script")
    page.goto("about:blank")
    change(folder / name, "old", "new")
    page.goto(rig(live, url=f"{pages}/panel.html", viewers="2"))
    expect_texts(page, **changed)
    expect(page.locator("#log")).to_contain_text(f"All frames loaded again: {name} has changed")
    for old, new in (("new", "even newer"), ("even newer", "newest")):  # twice in one second of the server's dates
        change(folder / name, old, new)
        changed = {each: text.replace(old, new) for each, text in changed.items()}
        expect_texts(page, **changed)

    assert [] == log.errors


def test_a_changed_file_reloads_only_the_frames_that_use_it_with_their_settings(
    live: LiveServer, folder: Path, pages: str, page: Page
):
    (folder / "config.html").write_text((folder / "panel.html").read_text().replace("panel.js", "config.js"))
    (folder / "config.js").write_text("")
    page.goto(rig(live, url=f"{pages}/panel.html", viewers="2", config="config.html"))
    expect_texts(page, script="old script")
    config = page.frame_locator("#frame-config").locator("#text")
    config.evaluate("(element) => { element.textContent = 'typed in'; }")
    page.get_by_role("button", name="Dark").click()
    change(folder / "panel.js", "old", "new")

    expect_texts(page, script="new script")
    assert "extcli_theme=dark" in frame(page, "1").url
    expect(config).to_have_text("typed in")
