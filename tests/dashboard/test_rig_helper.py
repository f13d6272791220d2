"""`window.Twitch.ext` in each kind of frame of the rig: every documented member and parameter, in Chromium."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Frame, Page

from dashboard.rig_pages import frame, log, page, rig
from support.browser import serve_folder
from support.service import LiveServer

__all__ = ("log", "page")
pytestmark = [pytest.mark.slow, pytest.mark.long]

KINDS = ("panel", "component", "overlay", "mobile", "config", "live")
CONTEXT: dict[str, type] = {
    "arePlayerControlsVisible": bool,
    "bitrate": int,
    "bufferSize": int,
    "displayResolution": str,
    "game": str,
    "hlsLatencyBroadcaster": int,
    "hostingInfo": type(None),  # undefined: the channel hosts no other
    "isFullScreen": bool,
    "isMuted": bool,
    "isPaused": bool,
    "isTheatreMode": bool,
    "language": str,
    "mode": str,
    "playbackMode": str,
    "theme": str,
    "videoResolution": str,
    "volume": int,
}
"""The documented members of the context."""
ACTING = {
    "version": r"done(/^\d+\.\d+\.\d+$/.test(ext.version))",
    "environment": "done(ext.environment === 'production')",
    "onAuthorized": """ext.onAuthorized((auth) => done(
        ['channelId', 'clientId', 'token', 'helixToken', 'userId'].every((name) => typeof auth[name] === 'string')))""",
    "onContext": "ext.onContext((context, changed) => done(changed.includes('theme') && context.theme === 'light'))",
    "onError": "ext.onError((error) => done(error instanceof Error)); ext.configuration.set('global', '1', '')",
    "onVisibilityChanged": "rig({hidden: false}); ext.onVisibilityChanged((shown, { mode }) => done(shown && mode))",
    "onPositionChanged": "rig({x: 50}); ext.onPositionChanged(({ x, y }) => x && done(x === 5000 && y === 0))",
    "onHighlightChanged": "ext.onHighlightChanged((lit) => done(lit === true)); rig({highlight: true})",
    "listen": "ext.listen('broadcast', () => done(true)); hear()",
    "send": "ext.listen('broadcast', (target, type, text) => done(type === 'text/plain' && text === 'a')); hear()",
    "unlisten": """const never = () => done(false);
        ext.listen('broadcast', never); ext.unlisten('broadcast', never);
        ext.listen('broadcast', () => setTimeout(done, 0, true)); hear()""",
    "rig.log": "rig.heard = (words) => done(words === 'a b'); ext.rig.log('a', 'b')",
    "actions.onFollow": "ext.actions.onFollow((did, who) => done(did && who === 'a')); ext.actions.followChannel('a')",
    "actions.followChannel": "ext.actions.onFollow((did) => done(did)); ext.actions.followChannel('b')",
    "viewer.id": "ext.onAuthorized(() => done(ext.viewer.id === claims().user_id))",
    "viewer.opaqueId": "ext.onAuthorized(() => done(ext.viewer.opaqueId === claims().opaque_user_id))",
    "viewer.role": "ext.onAuthorized(() => done(ext.viewer.role === claims().role))",
    "viewer.isLinked": "ext.onAuthorized(() => done(ext.viewer.isLinked === true))",
    "viewer.sessionToken": "ext.onAuthorized(({ token }) => done(ext.viewer.sessionToken === token))",
    "viewer.subscriptionStatus": "done(ext.viewer.subscriptionStatus === null)",
    "viewer.onChanged": "ext.viewer.onChanged(() => done(Boolean(ext.viewer.sessionToken)))",
    "features.isBitsEnabled": "done(ext.features.isBitsEnabled === true)",
    "features.isChatEnabled": "done(ext.features.isChatEnabled === true)",
    "features.isSubscriptionStatusAvailable": "done(ext.features.isSubscriptionStatusAvailable === true)",
    "features.onChanged": """ext.features.onChanged((changed) => done(changed.join()
        === 'isBitsEnabled,isChatEnabled,isSubscriptionStatusAvailable'))""",
    "bits.onTransactionComplete": """window.MEDKIT_PURCHASABLE_ITEMS = [{ sku: 'a', displayName: 'A', cost: {} }];
        ext.bits.onTransactionComplete((deal) => done(deal.transactionID && deal.domainID === 'twitch.ext.my-extension'
          && deal.initiator === 'current_user' && deal.product.sku === 'a' && deal.transactionReceipt.split('.').length
          && deal.displayName)); ext.bits.useBits('a')""",
    "bits.useBits": """window.MEDKIT_PURCHASABLE_ITEMS = [{ sku: 'a' }];
        ext.bits.onTransactionComplete(() => done(true)); ext.bits.useBits('a')""",
    "bits.onTransactionCancelled": "ext.bits.onTransactionCancelled(() => done(true)); ext.bits.useBits('unknown')",
    "configuration.global": "ext.configuration.onChanged(() => done(ext.configuration.global === undefined))",
    "configuration.developer": "ext.configuration.onChanged(() => done(ext.configuration.developer === undefined))",
    "configuration.broadcaster": "ext.configuration.onChanged(() => done(ext.configuration.broadcaster === undefined))",
    "configuration.onChanged": "ext.configuration.onChanged(() => done(true))",
    "configuration.set": """ext.onError((error) => /viewer/.test(error) && done(ext.viewer.role !== 'broadcaster'));
        ext.configuration.onChanged(() => ext.configuration.broadcaster && done(true));
        ext.configuration.set('broadcaster', '1', '{}')""",
}
"""The members that do as documented, and how to see it."""
SAYING = {
    "viewer.helixToken": "ext.viewer.helixToken",
    "actions.minimize": "ext.actions.minimize()",
    "actions.requestIdShare": "ext.actions.requestIdShare()",
    "bits.getProducts": "ext.bits.getProducts()",
    "bits.setUseLoopback": "ext.bits.setUseLoopback(false)",
    "bits.showBitsBalance": "ext.bits.showBitsBalance()",
}
"""The members that do nothing in a frame with default settings, and say so; and how to use them."""
ASK = """async ([member, code]) => {
  const { ext } = window.Twitch;
  const claims = () => JSON.parse(atob(ext.viewer.sessionToken.split('.')[1].replace(/-/g, '+').replace(/_/g, '/')));
  const hear = () => ext.onAuthorized(() => window.subscribed.then(() => ext.send('broadcast', 'text/plain', 'a')));
  const rig = (settings) => window.parent.postMessage({ ask: settings }, '*');
  window.said = (words) => rig.heard?.(words);
  const run = new Function('ext', 'done', 'claims', 'hear', 'rig', code);
  return new Promise((done, fail) => {
    setTimeout(fail, 10_000, new Error(`nothing happened: ${member}`));
    run(ext, done, claims, hear, rig);
  });
}"""
RELAY = """addEventListener('message', ({ source, data }) => {
  if (data?.ask) source.postMessage({ extcli: data.ask }, '*');
});"""
"""In the rig's page: sends a frame the settings that its page asks for, as the rig does when a control changes."""
PAGE = """<!doctype html><title>An extension</title><link rel="icon" href="data:,">
<script>
  window.WebSocket = class extends WebSocket {
    constructor(...args) {
      super(...args);
      window.subscribed = new Promise((resolve) => this.addEventListener('message', ({ data }) => {
        if (data.includes('subscription_succeeded')) resolve();
      }));
    }
  };
  const log = console.log;
  console.log = (...words) => { log(...words); window.said?.(words.join(' ')); };
</script>
<script src="{service}/_emulator/platform-helper.js"></script>
<script>
  const { ext } = window.Twitch;
  window.contexts = [];
  ext.onContext((context, changed) => window.contexts.push([{ ...context, keys: Object.keys(context) }, changed]));
</script>"""


@pytest.fixture
def pages(live: LiveServer, tmp_path: Path) -> Iterator[str]:
    """The URL of a folder with `page.html`."""
    (tmp_path / "page.html").write_text(PAGE.replace("{service}", live.url))
    with serve_folder(tmp_path) as url:
        yield url


def show(page: Page, live: LiveServer, pages: str, kind: str, **query: str) -> Frame:
    """Show the page in a frame of this kind, and return the frame."""
    name = kind if kind in ("config", "live") else "1"
    settings = {"1.view": kind} if name == "1" else {kind: "page.html"}
    page.add_init_script(RELAY)
    page.goto(rig(live, url=f"{pages}/page.html", viewers="1", **settings, **query))
    return frame(page, name)


@pytest.mark.parametrize("kind", KINDS)
def test_contexts_have_each_documented_member_and_name_what_changed(
    live: LiveServer, pages: str, page: Page, kind: str
):
    shown = show(page, live, pages, kind)
    shown.wait_for_function("window.contexts.length")
    context, changed = shown.evaluate("window.contexts[0]")
    assert (list(CONTEXT), list(CONTEXT)) == (context.pop("keys"), changed)
    assert CONTEXT == {name: type(context.get(name)) for name in CONTEXT}
    assert ["1920", "1080"] == context["displayResolution"].split("x")
    assert 0 <= context["volume"] <= 1

    shown.evaluate("window.parent.postMessage({ ask: { theme: 'dark', paused: true } }, '*')")
    shown.wait_for_function("window.contexts.length == 2")
    context, changed = shown.evaluate("window.contexts[1]")
    assert (list(CONTEXT), ["theme", "isPaused"]) == (context.pop("keys"), changed)
    assert ("dark", True) == (context["theme"], context["isPaused"])


@pytest.mark.parametrize("kind", ["panel", "config", "live"])
def test_each_documented_member_acts_or_says_that_it_does_not(live: LiveServer, pages: str, page: Page, kind: str):
    said: list[str] = []
    page.on("console", lambda message: said.append(message.text) if "the emulator" in message.text else None)
    shown = show(page, live, pages, kind)
    assert [] == [member for member, code in ACTING.items() if shown.evaluate(ASK, [member, code]) is False]

    shown = show(page, live, pages, kind)
    shown.evaluate("new Promise((resolve) => ext.onAuthorized(resolve))")
    said.clear()
    for code in SAYING.values():
        for _ in range(2):
            shown.evaluate(f"(() => {{ {code} }})()")
    assert list(SAYING) == [each.split()[0].removeprefix("Twitch.ext.").rstrip(":") for each in said]
    assert set(ACTING) | set(SAYING) == set(shown.evaluate(MEMBERS))


MEMBERS = """() => Object.entries(window.Twitch.ext).filter(([name]) => name !== 'emulated').flatMap(
  ([name, value]) => (typeof value === 'object' ? Object.keys(value).map((each) => `${name}.${each}`) : [name]))"""


EVENTS = {
    "onContext": "rig({ theme: 'dark' })",
    "onVisibilityChanged": "rig({ hidden: true })",
    "onAuthorized": "",
    "onError": "ext.configuration.set('global', '1', '')",
    "viewer.onChanged": "",
    "configuration.onChanged": "",
    "actions.onFollow": "ext.actions.followChannel('a')",
    "bits.onTransactionCancelled": "ext.bits.useBits('unknown')",
    "bits.onTransactionComplete": "window.MEDKIT_PURCHASABLE_ITEMS = [{ sku: 'a' }]; ext.bits.useBits('a')",
}
"""What each event comes after; nothing if it comes by itself."""


def test_only_the_last_callback_of_an_event_runs_and_an_error_in_one_stops_no_other(
    live: LiveServer, pages: str, page: Page
):
    shown = show(page, live, pages, "component")
    for event, trigger in EVENTS.items():
        code = f"""const called = [];
          const start = () => {{ {trigger} }};
          ext.{event}(() => called.push('first'));
          ext.{event}(() => {{ called.push('last'); setTimeout(done, 0, called); }});
          start();"""
        assert {"last"} == set(shown.evaluate(ASK, [event, code])), event

    shown = show(page, live, pages, "panel")
    for event in ("onContext", "configuration.onChanged", "features.onChanged", "viewer.onChanged"):
        code = f"""let times = 0;
          ext.{event}(() => {{ times += 1; throw new Error('boom'); }});
          ext.onAuthorized(() => setTimeout(() => done([times, Boolean(ext.viewer.sessionToken)])));"""
        assert [1, True] == shown.evaluate(ASK, [event, code]), event


def test_a_component_is_told_its_place_when_it_loads(live: LiveServer, pages: str, page: Page):
    code = "ext.onPositionChanged((place) => done(place))"

    assert {"x": 0, "y": 0} == show(page, live, pages, "component").evaluate(ASK, ["", code])
    placed = show(page, live, pages, "component", **{"1.x": "50", "1.y": "25"})
    assert {"x": 5000, "y": 2500} == placed.evaluate(ASK, ["", code])
