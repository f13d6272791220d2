"""The rig shows files as they are now, also those that the browser would take from its cache, in Chromium."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from support.browser import serve_folder
from support.rig_pages import Log, log, page, rig
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


def change(file: Path) -> None:
    file.write_text(file.read_text().replace("old", "new"))
    os.utime(file, (time.time() - DAY,) * 2)


def expect_texts(page: Page, **texts: str) -> None:
    for number in "12":
        for name, text in texts.items():
            expect(page.frame_locator(f"#frame-{number}").locator(f"#{name}")).to_have_text(text)


@pytest.mark.parametrize("name", ["panel.html", "panel.js"])
def test_a_reload_of_the_rig_shows_a_changed_file_in_each_frame(
    live: LiveServer, folder: Path, pages: str, page: Page, log: Log, name: str
):
    page.goto(rig(live, url=f"{pages}/panel.html", viewers="2"))
    expect_texts(page, text="old page", script="old script")
    change(folder / name)
    page.reload()

    is_page = name == "panel.html"
    expect_texts(page, text="new page" if is_page else "old page", script="old script" if is_page else "new script")
    expect(page.get_by_role("status")).to_contain_text("A file of the pages has changed")
    assert [] == log.errors
