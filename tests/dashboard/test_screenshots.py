"""The pictures in the README. `make screenshots` takes them again: it sets `SCREENSHOTS` to their folder."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from support.browser import copy_pages, serve_folder
from support.service import CHANNEL, LiveServer

pytestmark = pytest.mark.slow
MOST = 150 * 1024
"""Bytes of a picture."""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return Path(os.environ["SCREENSHOTS"]) if "SCREENSHOTS" in os.environ else tmp_path


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    context = browser.new_context(viewport={"width": 1000, "height": 620}, color_scheme="light")
    yield context.new_page()
    context.close()


@pytest.mark.long
def test_the_readme_shows_the_page_of_a_poll(live: LiveServer, page: Page, folder: Path):
    broadcaster = live.client("broadcaster", user=CHANNEL, channel=CHANNEL)
    definition = {"prompt": "Which boss is next?", "options": ["Dragon", "Golem", "Hydra"]}
    broadcaster.post("vote_config?id=boss", json={"config": definition}).raise_for_status()
    page.goto(f"{live.url}/_emulator/ui/polls?id=boss&client_id=my-extension&channel_id={CHANNEL}")
    for user in range(120):
        value = (0, 0, 2, 1, 2, 0, 2)[user % 7]
        live.client("viewer", user=str(user), channel=CHANNEL).post("vote?id=boss", json={"value": value})
    expect(page.get_by_role("row", name="Dragon 0 52 43 %")).to_be_visible()

    take(page, folder / "poll.png")


@pytest.mark.long
def test_the_readme_shows_an_extension_in_the_rig(live: LiveServer, page: Page, folder: Path, tmp_path: Path):
    copy_pages(tmp_path, live.url)
    page.set_viewport_size({"width": 1400, "height": 900})
    with serve_folder(tmp_path) as url:
        page.goto(f"{live.url}/_emulator/rig?url={url}/panel.html&live=live.html&viewers=2")
        first, second, broadcaster = (page.frame_locator(f"#frame-{name}") for name in ("1", "2", "live"))
        broadcaster.get_by_label("Question").fill("Which boss is next?")
        broadcaster.get_by_role("button", name="Start poll").click()
        first.get_by_role("button", name="Dragon").click()
        second.get_by_role("button", name="Hydra").click()
        expect(broadcaster.locator("#poll .note")).to_have_text("2 votes")

        take(page, folder / "rig.png")


def take(page: Page, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=path)

    assert 10 * 1024 < path.stat().st_size < MOST
