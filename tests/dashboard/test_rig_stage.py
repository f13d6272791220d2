"""Views, controls and presets of the rig, in Chromium."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from support.rig_pages import Log, extension, frame, log, page, rig
from support.service import LiveServer

__all__ = ("extension", "log", "page")
pytestmark = pytest.mark.slow


@pytest.mark.long
@pytest.mark.parametrize(
    ("view", "size", "given"),
    [
        ("panel", [318, 496], ["panel", "web", "viewer"]),
        ("component", [480, 540], ["component", "web", "viewer"]),
        ("overlay", [1920, 1080], ["video_overlay", "web", "viewer"]),
        ("mobile", [375, 812], ["panel", "mobile", "viewer"]),
        ("config", [1000, 700], [None, "web", "config"]),
        ("live", [640, 496], [None, "web", "dashboard"]),
    ],
)
def test_a_page_sees_the_size_and_parameters_of_its_view(
    live: LiveServer, extension: str, page: Page, log: Log, view: str, size: list[int], given: list[str | None]
):
    name = view if view in ("config", "live") else "1"
    page.goto(
        rig(
            live,
            url=f"{extension}/probe.html",
            viewers="1",
            **({"1.view": view} if name == "1" else {view: "probe.html"}),
        )
    )
    shown = frame(page, name)
    shown.wait_for_function("window.tokens.length")

    assert size == shown.evaluate("[innerWidth, innerHeight]")
    assert given == shown.evaluate(
        "['anchor', 'platform', 'mode'].map((name) => new URLSearchParams(location.search).get(name))"
    )
    assert [] == log.errors
    box = page.locator(".fit").last.bounding_box()
    assert box is not None
    assert box["x"] + box["width"] <= 1400


CALLBACKS = """() => {
  window.fired = [];
  const { ext } = window.Twitch;
  ext.onContext((context, changed) => changed.forEach((name) => window.fired.push([name, context[name]])));
  ext.onVisibilityChanged((isVisible, context) => window.fired.push(['visible', isVisible, context?.mode ?? null]));
  ext.onPositionChanged(({ x, y }) => window.fired.push(['position', x, y]));
  ext.onHighlightChanged((isHighlighted) => window.fired.push(['highlight', isHighlighted]));
}"""


@pytest.mark.long
def test_each_control_fires_the_callback_of_the_helper(live: LiveServer, extension: str, page: Page, log: Log):
    page.goto(rig(live, url=f"{extension}/probe.html", viewers="1", **{"1.view": "component"}))
    viewer = frame(page, "1")
    viewer.wait_for_function("window.tokens.length")
    viewer.evaluate(CALLBACKS)
    page.get_by_text("Settings of viewer 1").click()
    for name in ("Player controls visible", "Video paused", "Full screen", "Hidden", "Highlighted"):
        page.get_by_label(name).check()
    page.get_by_label("Hidden").uncheck()
    for name, value in (("From the left, %", "50"), ("From the top, %", "25"), ("Broadcasts later", "7")):
        page.get_by_label(name).fill(value)
        page.get_by_label(name).press("Tab")
    viewer.wait_for_function("window.fired.length == 9")

    assert [
        ["arePlayerControlsVisible", True],
        ["isPaused", True],
        ["isFullScreen", True],
        ["visible", False, None],
        ["highlight", True],
        ["visible", True, "viewer"],
        ["position", 5000, 0],
        ["position", 5000, 2500],
        ["hlsLatencyBroadcaster", 7],
    ] == viewer.evaluate("window.fired")
    assert [] == log.errors


@pytest.mark.long
def test_a_late_viewer_receives_broadcasts_after_the_delay(live: LiveServer, extension: str, page: Page):
    page.clock.install()
    page.goto(rig(live, url=f"{extension}/probe.html", viewers="2", **{"2.delay": "15"}))
    for name in "12":
        frame(page, name).wait_for_function("window.subscribed == 2")
    page.get_by_role("button", name="Send").click()
    frame(page, "1").wait_for_function("window.heard.length == 1")

    assert 0 == frame(page, "2").evaluate("window.heard.length")
    page.clock.fast_forward(15_000)
    frame(page, "2").wait_for_function("window.heard.length == 1")


@pytest.mark.long
def test_the_address_reproduces_presets_and_added_viewers(live: LiveServer, extension: str, page: Page, log: Log):
    page.goto(rig(live, url=f"{extension}/probe.html", viewers="1"))
    page.get_by_role("button", name="Overlay").click()
    page.get_by_role("button", name="+ subscriber").click()
    page.get_by_text("Settings of viewer 2").click()
    page.get_by_label("Video paused").last.check()
    page.goto(page.url)
    first, second = (frame(page, name) for name in "12")
    second.wait_for_function("window.tokens.length")

    assert [[1920, 1080], [318, 496]] == [each.evaluate("[innerWidth, innerHeight]") for each in (first, second)]
    assert {"tier": "1000"} == second.evaluate("window.Twitch.ext.viewer.subscriptionStatus")
    assert page.get_by_label("Video paused").last.is_checked()
    assert [] == log.errors


@pytest.mark.long
def test_a_frame_lists_a_refused_call_its_reason_a_broadcast_and_a_script_error(
    live: LiveServer, extension: str, page: Page, log: Log
):
    page.goto(rig(live, url=f"{extension}/probe.html", viewers="2"))
    for name in "12":
        frame(page, name).wait_for_function("window.subscribed == 2")
    frame(page, "1").evaluate(
        """(url) => {
          const { sessionToken } = window.Twitch.ext.viewer;
          const script = document.createElement('script');
          script.textContent = "console.log('rolled', {dice: 6}); throw new Error('boom');";
          document.body.append(script);
          const headers = { Authorization: `my-extension ${sessionToken}` };
          return fetch(`${url}/v1/e/broadcast`, { method: 'POST', body: '{"event":"x","data":{}}', headers });
        }""",
        live.url,
    )
    page.get_by_role("button", name="Send").click()
    first, second = (page.get_by_role("region", name=f"What viewer {name} did") for name in "12")
    expect(first.locator(".calls .error")).to_contain_text("403 POST /v1/e/broadcast")
    first.get_by_text("Why").click()
    expect(first.locator("details")).to_contain_text("broadcaster")
    assert first.locator("details > p").evaluate("(text) => text.scrollWidth <= text.clientWidth"), "the text is cut"
    expect(first.locator(".said .error")).to_have_text("error Uncaught Error: boom")
    expect(first.locator(".said")).to_contain_text('log rolled {"dice":6}')
    for each in (first, second):
        expect(each.locator(".said")).to_contain_text('heard broadcast {"event":"motd"')
        expect(each.locator(".said [title*=motd]")).to_have_attribute(
            "title", re.compile('"sandbox:my-extension:motd"')
        )
    expect(second.locator(".error")).to_have_count(0)
    expect(first.get_by_role("link", name="403 POST")).to_have_attribute("href", re.compile("ui/requests.entry="))

    # The page's own error, and the browser's line about status 403; the policy reports nothing.
    assert not [each for each in log.errors if "boom" not in each and "403" not in each]


@pytest.mark.long
@pytest.mark.parametrize("view", ["overlay", "component"])
def test_the_calls_are_next_to_a_wide_stage_and_below_a_narrow_one(
    live: LiveServer, extension: str, page: Page, view: str
):
    page.goto(rig(live, url=f"{extension}/probe.html", viewers="1", **{"1.view": view}))
    stage, did = page.locator(".fit"), page.get_by_role("region", name="What viewer 1 did")

    def edges(width: int) -> tuple[float, float, float, float]:
        page.set_viewport_size({"width": width, "height": 900})
        page.evaluate("() => new Promise(requestAnimationFrame)")
        boxes = stage.bounding_box(), did.bounding_box()
        assert boxes[0] is not None
        assert boxes[1] is not None
        assert boxes[1]["x"] + boxes[1]["width"] <= width
        return boxes[0]["x"] + boxes[0]["width"], boxes[0]["y"] + boxes[0]["height"], boxes[1]["x"], boxes[1]["y"]

    for width in (1200, 1440):
        right, bottom, x, y = edges(width)
        assert right <= x
        assert y < bottom
    for width in (375, 1199):
        _, bottom, _, y = edges(width)
        assert y >= bottom


REFUSED_CALL = """(url) => {
  const { sessionToken } = window.Twitch.ext.viewer;
  const headers = { Authorization: `my-extension ${sessionToken}` };
  return fetch(`${url}/v1/e/broadcast`, { method: 'POST', body: '{"event":"x","data":{}}', headers });
}"""


@pytest.mark.long
def test_a_frame_counts_its_refused_calls(live: LiveServer, extension: str, page: Page):
    page.goto(rig(live, url=f"{extension}/probe.html", viewers="2"))
    heads = [page.locator(f"#title-{name}") for name in "12"]
    for name, head in zip("12", heads, strict=True):
        frame(page, name).wait_for_function("window.subscribed == 2")
        expect(head).to_have_text(f"Viewer {name} 0 refused")
    # Both frames come to the same count, one after the other.
    for name, head in zip("12", heads, strict=True):
        frame(page, name).evaluate(REFUSED_CALL, live.url)
        expect(head).to_have_text(f"Viewer {name} 1 refused")


@pytest.mark.long
def test_a_frame_shows_the_calls_of_its_new_user_without_a_reload(live: LiveServer, extension: str, page: Page):
    page.goto(rig(live, url=f"{extension}/probe.html", viewers="1"))
    frame(page, "1").wait_for_function("window.subscribed == 2")
    frame(page, "1").evaluate(REFUSED_CALL, live.url)
    head, calls = page.locator("#title-1"), page.locator("#did-1 .calls")
    expect(head).to_have_text("Viewer 1 1 refused")
    page.get_by_text("Settings of viewer 1").click()
    page.get_by_label("User id").fill("77")
    page.get_by_label("User id").press("Tab")
    expect(head).to_have_text("Viewer 1 0 refused")
    expect(calls).not_to_contain_text("403")

    frame(page, "1").wait_for_function("window.subscribed == 2 && window.tokens[0].user_id == '77'")
    frame(page, "1").evaluate(REFUSED_CALL, live.url)
    expect(calls).to_contain_text("403 POST /v1/e/broadcast")
    expect(head).to_have_text("Viewer 1 1 refused")
