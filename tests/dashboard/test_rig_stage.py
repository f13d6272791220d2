"""Views, controls and presets of the rig, in Chromium."""

from __future__ import annotations

import re
from urllib.parse import parse_qsl, urlsplit

import pytest
from playwright.sync_api import Page, expect

from dashboard.rig_pages import Log, extension, frame, log, page, rig
from support.service import LiveServer

__all__ = ("extension", "log", "page")
pytestmark = [pytest.mark.slow, pytest.mark.long]


VIEWS = {
    "1": ("panel", [318, 496], {"anchor": "panel", "platform": "web", "mode": "viewer"}),
    "2": ("component", [480, 540], {"anchor": "component", "platform": "web", "mode": "viewer"}),
    "3": ("overlay", [1920, 1080], {"anchor": "video_overlay", "platform": "web", "mode": "viewer"}),
    "4": ("mobile", [375, 812], {"anchor": "panel", "platform": "mobile", "mode": "viewer"}),
    "config": ("", [1000, 700], {"platform": "web", "mode": "config"}),
    "live": ("", [640, 496], {"platform": "web", "mode": "dashboard"}),
}
"""The view of each frame, its size and the parameters of its page."""


def test_a_page_sees_the_size_and_parameters_of_its_view(live: LiveServer, extension: str, page: Page, log: Log):
    settings = {f"{name}.view": view for name, (view, _, _) in VIEWS.items() if view}
    settings |= {f"{name}.language": "ja" for name in VIEWS}
    pages = {"config": "probe.html", "live": "probe.html"}
    page.goto(rig(live, url=f"{extension}/probe.html", viewers="4", **pages, **settings))
    documented = {"language": "ja", "locale": "ja-JP", "popout": "false", "state": "testing"}
    for name, (_, size, given) in VIEWS.items():
        shown = frame(page, name)
        shown.wait_for_function("window.tokens.length")
        parameters = parse_qsl(urlsplit(shown.url).query)
        assert documented | given == {each: value for each, value in parameters if not each.startswith("extcli_")}
        assert size == shown.evaluate("[innerWidth, innerHeight]")
    assert [] == log.errors


CALLBACKS = """() => {
  window.fired = [];
  const { ext } = window.Twitch;
  ext.onContext((context, changed) => changed.length === 1 && window.fired.push([changed[0], context[changed[0]]]));
  ext.onVisibilityChanged((isVisible, context) => window.fired.push(['visible', isVisible, context?.mode ?? null]));
  ext.onPositionChanged(({ x, y }) => window.fired.push(['position', x, y]));
  ext.onHighlightChanged((isHighlighted) => window.fired.push(['highlight', isHighlighted]));
}"""


def test_each_control_fires_the_callback_of_the_helper(live: LiveServer, extension: str, page: Page, log: Log):
    page.goto(rig(live, url=f"{extension}/probe.html", viewers="1", **{"1.view": "component"}))
    viewer = frame(page, "1")
    viewer.wait_for_function("window.tokens.length")
    viewer.evaluate(CALLBACKS)
    page.get_by_role("button", name="Settings of viewer 1").click()
    for name in ("Player controls visible", "Video paused", "Full screen", "Hidden", "Highlighted"):
        page.get_by_label(name).check()
    page.get_by_label("Hidden").uncheck()
    for name, value in (("From the left, %", "50"), ("From the top, %", "25"), ("Broadcast delay", "7")):
        page.get_by_label(name).fill(value)
        page.get_by_label(name).press("Tab")
    page.get_by_label("Theme", exact=True).select_option("dark")
    page.get_by_label("Language").fill("fr")
    page.get_by_label("Language").press("Tab")
    viewer.wait_for_function("window.fired.length == 12")

    assert [
        ["position", 0, 0],
        ["arePlayerControlsVisible", True],
        ["isPaused", True],
        ["isFullScreen", True],
        ["visible", False, None],
        ["highlight", True],
        ["visible", True, "viewer"],
        ["position", 5000, 0],
        ["position", 5000, 2500],
        ["hlsLatencyBroadcaster", 7],
        ["theme", "dark"],
        ["language", "fr"],
    ] == viewer.evaluate("window.fired")
    assert [] == log.errors


def test_a_late_viewer_receives_broadcasts_after_the_delay(live: LiveServer, extension: str, page: Page):
    page.clock.install()
    page.goto(rig(live, url=f"{extension}/probe.html", viewers="2", **{"2.delay": "15"}))
    for name in "12":
        frame(page, name).wait_for_function("window.subscribed == 2")
    page.get_by_role("button", name="Broadcast", exact=True).click()
    page.get_by_role("button", name="Send").click()
    frame(page, "1").wait_for_function("window.heard.length == 1")

    assert 0 == frame(page, "2").evaluate("window.heard.length")
    page.clock.fast_forward(15_000)
    frame(page, "2").wait_for_function("window.heard.length == 1")


def test_the_address_reproduces_switches_and_added_viewers(live: LiveServer, extension: str, page: Page, log: Log):
    page.goto(rig(live, url=f"{extension}/probe.html", viewers="1"))
    page.get_by_role("button", name="Overlay").click()
    expect(page.get_by_role("button", name="Overlay", pressed=True)).to_be_visible()
    page.get_by_role("button", name="Dark").click()
    page.get_by_role("button", name="Add a viewer").click()
    page.get_by_role("button", name="Settings of viewer 2").click()
    page.get_by_label("Subscription").last.select_option("tier 1")
    page.get_by_label("Video paused").last.check()
    expect(page).to_have_url(re.compile(r"2\.paused=on"))
    page.goto(page.url)
    expect(page.get_by_role("button", pressed=True)).to_have_text(["On time"])  # all else differs between the viewers
    first, second = (frame(page, name) for name in "12")
    second.wait_for_function("window.tokens.length")

    assert [[1920, 1080], [318, 496]] == [each.evaluate("[innerWidth, innerHeight]") for each in (first, second)]
    assert {"tier": "1000"} == second.evaluate("window.Twitch.ext.viewer.subscriptionStatus")
    assert page.get_by_label("Video paused").last.is_checked()
    assert [] == log.errors


REFUSED_CALL = """(url) => {
  const { sessionToken } = window.Twitch.ext.viewer;
  const headers = { Authorization: `my-extension ${sessionToken}` };
  return fetch(`${url}/v1/e/broadcast`, { method: 'POST', body: '{"event":"x","data":{}}', headers });
}"""


def test_the_log_names_calls_broadcasts_and_errors_of_all_frames(
    live: LiveServer, extension: str, page: Page, log: Log
):
    page.goto(rig(live, url=f"{extension}/probe.html", viewers="2"))
    for name in "12":
        frame(page, name).wait_for_function("window.subscribed == 2")
    frame(page, "1").evaluate(REFUSED_CALL, live.url)
    frame(page, "1").evaluate(
        """() => {
          const script = document.createElement('script');
          script.textContent = "console.log('rolled', {dice: 6}); throw new Error('boom');";
          document.body.append(script);
        }"""
    )
    page.get_by_role("button", name="Broadcast", exact=True).click()
    page.get_by_role("button", name="Send").click()
    lines = page.get_by_role("region", name="What the frames did").get_by_role("listitem")
    refused = lines.filter(has_text="403 POST /v1/e/broadcast")
    expect(refused).to_contain_text("the role viewer may not")
    expect(refused).to_contain_text("Send a token of the role broadcaster")
    expect(refused.get_by_role("link")).to_have_attribute("href", re.compile("ui/requests.entry="))
    expect(lines.filter(has_text="Viewer 1 error Uncaught Error: boom")).to_be_visible()
    expect(lines.filter(has_text='Viewer 1 log rolled {"dice":6}')).to_be_visible()
    expect(lines.filter(has_text="All frames heard motd {}")).to_be_visible()
    page.keyboard.press("Escape")
    page.get_by_label("only refusals and errors").check()
    expect(lines).to_have_text([re.compile("boom"), re.compile("403")])

    # The page's own error, and the browser's line about status 403; the policy reports nothing.
    assert not [each for each in log.errors if "boom" not in each and "403" not in each]

    page.get_by_label("only refusals and errors").uncheck()
    page.get_by_role("button", name="Settings of viewer 1").click()
    page.get_by_label("User id").first.fill("77")
    page.get_by_label("User id").first.press("Tab")
    frame(page, "1").wait_for_function("window.subscribed == 2 && window.tokens[0]?.user_id == '77'")
    frame(page, "1").evaluate(REFUSED_CALL, live.url)
    expect(refused).to_have_count(2)  # also of the new user
