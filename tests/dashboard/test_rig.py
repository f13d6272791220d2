"""The rig, with the example extension in its frames, in Chromium."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from dashboard.rig_pages import Log, extension, frame, log, page, rig
from support.service import LiveServer

__all__ = ("extension", "log", "page")
pytestmark = pytest.mark.slow


def test_the_dashboard_and_the_rig_open_without_an_error(live: LiveServer, extension: str, page: Page, log: Log):
    """The only test in Chromium that `make test` runs."""
    page.goto(f"{live.url}/_emulator/")
    expect(page.locator("main")).to_be_visible()
    page.goto(rig(live, url=f"{extension}/panel.html", live="live.html", viewers="1"))

    for name in ("1", "live"):
        expect(page.frame_locator(f"#frame-{name}").locator("#question")).to_have_text("No poll yet")
    assert (set(), []) == (log.origins - {live.url, extension}, log.errors)


@pytest.mark.long
def test_a_frame_has_its_role_identity_theme_and_language_and_shares_the_id_when_asked(
    live: LiveServer, extension: str, page: Page
):
    settings = {
        "1.user_id": "42",
        "1.theme": "dark",
        "1.language": "de",
        "2.identity": "unshared",
        "3.identity": "anonymous",
        "4.role": "broadcaster",
    }
    page.goto(rig(live, url=f"{extension}/probe.html", viewers="4", channel_id="777", client_id="other", **settings))
    claims = []
    for name in "1234":
        frame(page, name).wait_for_function("window.tokens.length")
        claims.append(frame(page, name).evaluate("window.tokens[0]"))

    assert ["dark", "de"] == frame(page, "1").evaluate("window.contexts[0].slice(0, 2)")
    assert [("viewer", "42"), ("viewer", None), ("viewer", None), ("broadcaster", "777")] == [
        (each["role"], each.get("user_id")) for each in claims
    ]
    assert ["U42", "U5552", "A", "U777"] == [
        claims[0]["opaque_user_id"],
        claims[1]["opaque_user_id"],
        claims[2]["opaque_user_id"][0],
        claims[3]["opaque_user_id"],
    ]
    assert {("777", "other")} == {(each["channel_id"], each["extension_id"]) for each in claims}

    unshared = frame(page, "2")
    unshared.evaluate("window.Twitch.ext.actions.requestIdShare()")
    unshared.wait_for_function("window.tokens.length == 2")
    assert [None, "5552"] == [each.get("user_id") for each in unshared.evaluate("window.tokens")]
    assert 1 == len({each["opaque_user_id"] for each in unshared.evaluate("window.tokens")})


@pytest.mark.long
def test_a_muted_frame_is_offline_and_the_others_are_not(live: LiveServer, extension: str, page: Page):
    page.goto(rig(live, url=f"{extension}/probe.html", viewers="2"))
    for name in "12":
        frame(page, name).wait_for_function("window.tokens.length")
    muted = frame(page, "1")
    muted.evaluate(
        """(url) => {
          window.said = [];
          window.addEventListener('offline', () => window.said.push('offline'));
          window.addEventListener('online', () => window.said.push('online'));
          window.socket = new WebSocket(url);
          window.socket.onclose = () => window.said.push('closed');
          return new Promise((resolve) => { window.socket.onopen = resolve; });
        }""",
        f"{live.url.replace('http', 'ws')}/ws",
    )
    page.get_by_role("button", name="Settings of viewer 1").click()
    page.get_by_label("No network").first.check()
    muted.wait_for_function("window.said.includes('closed')")
    offline = muted.evaluate(NETWORK, live.url)
    other = frame(page, "2").evaluate(NETWORK, live.url)
    page.get_by_label("No network").first.uncheck()
    muted.wait_for_function("window.said.includes('online')")

    assert {"fetch": False, "xhr": False, "socket": False, "events": False, "beacon": False, "onLine": False} == offline
    assert {"fetch": True, "xhr": True, "socket": True, "events": False, "beacon": True, "onLine": True} == other
    assert muted.evaluate(NETWORK, live.url)["fetch"]


NETWORK = """async (url) => {
  const xhr = new Promise((resolve) => {
    const request = new XMLHttpRequest();
    request.onload = () => resolve(true);
    request.onerror = () => resolve(false);
    request.open('GET', `${url}/_emulator/sdk.js`);
    request.send();
  });
  const socket = new Promise((resolve) => {
    const opened = new WebSocket(`${url.replace('http', 'ws')}/ws`);
    opened.onopen = () => resolve(true);
    opened.onerror = () => resolve(false);
  });
  const events = new Promise((resolve) => {
    const source = new EventSource(`${url}/_emulator/sdk.js`);
    source.onerror = () => resolve(false);
    source.onopen = () => resolve(true);
  });
  return {
    fetch: await fetch(`${url}/_emulator/sdk.js`).then(() => true, () => false),
    xhr: await xhr,
    socket: await socket,
    events: await events,
    beacon: navigator.sendBeacon(`${url}/_emulator/sdk.js`),
    onLine: navigator.onLine,
  };
}"""
"""Tries each way to reach the service. The service has no event source for pages of other origins."""


@pytest.mark.long
def test_the_bar_broadcasts_to_all_frames_and_links_a_game_by_its_pin(live: LiveServer, extension: str, page: Page):
    page.goto(rig(live, url=f"{extension}/probe.html", viewers="2"))
    for name in "12":
        frame(page, name).wait_for_function("window.subscribed == 2")
    page.get_by_role("button", name="Broadcast", exact=True).click()
    page.get_by_label("Event", exact=True).fill("motd")
    page.get_by_label("Data, as JSON").fill('{"text": "hello"}')
    page.get_by_role("button", name="Send").click()
    for name in "12":
        frame(page, name).wait_for_function("window.heard.length")
        assert {"text": "hello"} == frame(page, name).evaluate("window.heard[0].data")
    page.keyboard.press("Escape")

    page.get_by_role("button", name="PIN", exact=True).click()
    page.get_by_role("button", name="Request a PIN as a game").click()
    shown = page.get_by_role("status")
    expect(shown).to_contain_text("The PIN of the game: ")
    pin = shown.locator("b").text_content() or ""
    page.get_by_label("PIN that the game shows").fill("WRONG9")
    page.get_by_role("button", name="Enter as broadcaster").click()
    expect(shown).to_contain_text("the PIN is wrong or has expired")
    page.get_by_label("PIN that the game shows").fill(pin)
    page.get_by_role("button", name="Enter as broadcaster").click()
    expect(shown).to_contain_text("The PIN is valid: the game that shows it is now linked to the channel.")


@pytest.mark.long
def test_a_frame_can_load_pages_of_its_origin_only(live: LiveServer, extension: str, page: Page, log: Log):
    page.goto(rig(live, url=f"{extension}/probe.html", viewers="1"))
    frame(page, "1").wait_for_function("window.tokens.length")
    with page.expect_console_message(lambda message: "violation: frame-src" in message.text):
        frame(page, "1").evaluate(f"location.href = '{live.url}/_emulator/sdk.js'")

    assert any("violation: frame-src" in each for each in log.errors)
