"""The platform's configuration service in the rig, for pages that know nothing of the emulator, in Chromium."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from dashboard.rig_pages import Log, frame, log, page, rig
from support.browser import serve_folder
from support.service import LiveServer

__all__ = ("log", "page")
pytestmark = [pytest.mark.slow, pytest.mark.long]

FRAMES = ("1", "2", "config", "live")
RESERVED = "twitch-configuration"
"""The viewer whose stores hold the configuration."""

HEAD = """<!doctype html><title>An extension</title><link rel="icon" href="data:,">
<script src="{service}/_emulator/platform-helper.js"></script>
<p id="colour"></p><p id="calls"></p><p id="authorized"></p>"""
READER = """<script>
  const { configuration, onAuthorized } = window.Twitch.ext;
  let calls = 0;
  configuration.onChanged(() => {
    const { broadcaster } = configuration;
    document.getElementById('colour').textContent = broadcaster ? JSON.parse(broadcaster.content).colour : 'not set';
    document.getElementById('calls').textContent = `call ${++calls}`;
  });
  onAuthorized(() => {
    document.getElementById('authorized').textContent = `authorized after call ${calls}`;
  });
</script>"""
FORM = """<form><input id="wanted" aria-label="Colour"><button>Save</button></form><script>
  document.querySelector('form').addEventListener('submit', (event) => {
    event.preventDefault();
    const content = JSON.stringify({ colour: document.getElementById('wanted').value });
    window.Twitch.ext.configuration.set('broadcaster', '1', content);
  });
</script>"""


@pytest.fixture
def pages(live: LiveServer, tmp_path: Path) -> Iterator[str]:
    """The URL of `panel.html` and `live.html`, which show a colour, and of `config.html`, which also sets it."""
    for name in ("panel", "live", "config"):
        text = HEAD.replace("{service}", live.url) + READER + (FORM if name == "config" else "")
        (tmp_path / f"{name}.html").write_text(text)
    with serve_folder(tmp_path) as url:
        yield url


def show(page: Page, live: LiveServer, pages: str, **query: str) -> None:
    arrangement = {"url": f"{pages}/panel.html", "config": "config.html", "live": "live.html", "viewers": "2"}
    page.goto(rig(live, **arrangement, **query))


def save(page: Page, colour: str) -> None:
    config = page.frame_locator("#frame-config")
    config.get_by_label("Colour").fill(colour)
    config.get_by_role("button", name="Save").click()


def expect_in_frames(page: Page, *, colour: str, calls: int) -> None:
    for name in FRAMES:
        expect(page.frame_locator(f"#frame-{name}").locator("#colour")).to_have_text(colour)
        expect(page.frame_locator(f"#frame-{name}").locator("#calls")).to_have_text(f"call {calls}")


def segments(page: Page, name: str) -> list[object]:
    """Return the segments that a frame has: global, developer, broadcaster."""
    found = frame(page, name).evaluate("({ ...window.Twitch.ext.configuration, onChanged: null, set: null })")
    return [found.get(segment) for segment in ("global", "developer", "broadcaster")]


def test_a_setting_of_the_config_page_reaches_each_frame_and_no_store(
    live: LiveServer, pages: str, page: Page, log: Log
):
    show(page, live, pages, channel_id="777")
    for name in FRAMES:
        expect(page.frame_locator(f"#frame-{name}").locator("#authorized")).to_have_text("authorized after call 1")
    expect_in_frames(page, colour="not set", calls=1)
    save(page, "red")
    expect_in_frames(page, colour="red", calls=2)
    save(page, "blue")
    expect_in_frames(page, colour="blue", calls=3)

    assert [None, None, {"version": "1", "content": '{"colour":"blue"}'}] == segments(page, "1")
    page.reload()
    expect_in_frames(page, colour="blue", calls=1)
    assert [] == log.errors
    viewer = live.client("viewer", user="5551", channel="777")
    empty = {"extension": {}, "channel": {}}
    assert empty == viewer.get("all_config").json()
    assert empty | {"viewer": {}, "extension_viewer": {}} == viewer.get("all_state").json()
    assert [] == live.client("backend", channel="777").get("user_ids").json()["results"]


def test_a_backend_gives_a_page_all_three_segments(live: LiveServer, pages: str, page: Page):
    record = {"version": "7", "content": "text"}
    reserved = live.client("viewer", user=RESERVED, opaque=f"U{RESERVED}", channel="777")
    reserved.post("extension_viewer_state", json={"global": record}).raise_for_status()
    reserved.post("viewer_state", json={"developer": record}).raise_for_status()
    show(page, live, pages, channel_id="777")
    save(page, "red")
    expect_in_frames(page, colour="red", calls=2)

    for name in FRAMES:
        assert [record, record, {"version": "1", "content": '{"colour":"red"}'}] == segments(page, name)

    reserved.post("viewer_state", json={"developer": record | {"version": "8"}}).raise_for_status()
    reserved.post("whisper_self", json={"event": "changed", "data": {}}).raise_for_status()
    expect_in_frames(page, colour="not set", calls=3)
    show(page, live, pages, channel_id="778")
    expect_in_frames(page, colour="not set", calls=1)
    assert [record, None, None] == segments(page, "1")


REFUSED = [
    ("1", ["broadcaster", "1", "{}"], "viewer"),
    ("config", ["global", "1", "{}"], "global"),
    ("live", ["Broadcaster", "1", "{}"], "Broadcaster"),
    ("config", ["broadcaster", "1", {"colour": "red"}], "object"),
    ("config", ["broadcaster", "1", "ü" * 2_561], "5122"),
]
"""The frame, what it sets, and a word of the error."""


def test_a_refused_setting_is_named_in_the_console_and_any_text_of_five_kilobytes_is_set(
    live: LiveServer, pages: str, page: Page, log: Log
):
    show(page, live, pages)
    expect_in_frames(page, colour="not set", calls=1)
    for name, arguments, said in REFUSED:
        with page.expect_console_message(lambda message, said=said: said in message.text):
            frame(page, name).evaluate(
                """([said, args]) => new Promise((resolve, reject) => {
                  setTimeout(reject, 10_000, new Error('no such error was reported'));
                  window.Twitch.ext.onError((error) => String(error).includes(said) && resolve());
                  window.Twitch.ext.configuration.set(...args);
                })""",
                [said, arguments],
            )
    save(page, "red")
    expect_in_frames(page, colour="red", calls=2)
    assert len(REFUSED) == len(log.errors)

    for content in ("ü" * 2_560, ""):
        setting = "(text) => window.Twitch.ext.configuration.set('broadcaster', 2, text)"
        frame(page, "live").evaluate(setting, content)
        is_set = "(text) => window.Twitch.ext.configuration.broadcaster.content === text"
        frame(page, "1").wait_for_function(is_set, arg=content)
        assert [None, None, {"version": "2", "content": content}] == segments(page, "1")


def test_a_frame_catches_up_after_a_time_without_network(live: LiveServer, pages: str, page: Page):
    show(page, live, pages)
    expect_in_frames(page, colour="not set", calls=1)
    page.get_by_role("button", name="Settings of viewer 1").click()
    page.get_by_label("No network").first.check()
    page.keyboard.press("Escape")
    frame(page, "1").wait_for_function("!navigator.onLine")
    save(page, "red")
    expect(page.frame_locator("#frame-2").locator("#colour")).to_have_text("red")
    expect(page.frame_locator("#frame-1").locator("#colour")).to_have_text("not set")
    page.get_by_role("button", name="Settings of viewer 1").click()
    page.get_by_label("No network").first.uncheck()

    expect_in_frames(page, colour="red", calls=2)
