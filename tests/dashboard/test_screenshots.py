"""The pictures in the README. `make screenshots` takes them again: it sets `SCREENSHOTS` to their folder."""

from __future__ import annotations

import os
import re
import struct
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from support.browser import copy_pages, serve_folder
from support.service import CHANNEL, LiveServer

pytestmark = pytest.mark.slow
ROOT = Path(__file__).parents[2]
IMAGES = ROOT / "docs" / "images"
WIDTH, HEIGHT = 1000, 620
MOST = 150 * 1024
"""Bytes of a picture."""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return Path(os.environ["SCREENSHOTS"]) if "SCREENSHOTS" in os.environ else tmp_path


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    context = browser.new_context(viewport={"width": WIDTH, "height": HEIGHT}, color_scheme="light")
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
    expect(page.get_by_role("row", name="0 Dragon 52 43 %")).to_be_visible()

    check_picture(take(page, folder / "poll.png"))


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

        check_picture(take(page, folder / "rig.png"))


def test_the_pictures_of_the_readme_are_there_and_small():
    text = (ROOT / "README.md").read_text()
    shown = re.findall(r"!\[[^\]]+\]\((docs/images/[^)]+)\)", text)

    assert sorted(shown) == sorted(str(path.relative_to(ROOT)) for path in IMAGES.iterdir())
    for path in shown:
        check_picture(ROOT / path)


def take(page: Page, path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=path)
    return path


def check_picture(path: Path) -> None:
    """Check that a picture is a PNG of a reasonable size, with something on it."""
    content = path.read_bytes()
    width, _height = struct.unpack(">II", content[16:24])

    assert b"\x89PNG" == content[:4]
    assert WIDTH <= width
    assert 10 * 1024 < len(content) < MOST
