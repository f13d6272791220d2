"""`extcli open`, `demo` and `rig`: pages of the service in the browser of the user."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from urllib.parse import urlencode

from extcli.cli import argument, flag, option, shared
from extcli.config.settings import DEFAULT_CHANNEL
from extcli.config.urls import reachable_url
from extcli.errors import UsageError
from extcli.output import views
from extcli.session import Session


def open_page(url: str) -> bool:
    """Open a page in a new tab of the default browser, or of `BROWSER`; return whether there is one."""
    if not has_display(os.environ, sys.platform):
        return False
    import webbrowser

    try:
        return webbrowser.open_new_tab(url)
    except webbrowser.Error:
        return False


def has_display(environ: Mapping[str, str], platform: str) -> bool:
    """Return whether a browser can show a page.

    On Linux without a display, a text browser would take over the terminal.
    """
    return platform in ("darwin", "win32") or any(
        environ.get(name) for name in ("BROWSER", "DISPLAY", "WAYLAND_DISPLAY")
    )


def dashboard_url(url: str, screen: str = "overview") -> str:
    """Return the address of a screen of the dashboard of a service."""
    path = {"overview": "", "rig": "rig"}.get(screen, f"ui/{screen}")
    return f"{reachable_url(url)}/_emulator/{path}"


SCREENS = (
    "overview", "polls", "rankings", "buffers", "stores", "codes", "pins", "links", "trivia", "purchases", "requests",
    "broadcasts", "sockets", "clock", "faults", "namespaces", "rig",
)  # fmt: skip
"""The screens of the dashboard, besides `poll`: the page of one poll, whose name follows."""


@shared
def open(
    session: Session,
    screen: str = argument("SCREEN", "The screen, such as polls, requests or clock. Default: overview.", "overview"),
    name: str | None = argument("NAME", "With poll: the poll's id.", None),
    present: bool = flag("--present", "With poll: show only its question and results, for a stream or a big screen."),
) -> None:
    """Open the dashboard of the emulator in the browser, and print its address. Sends nothing.

    The dashboard shows the emulator's data and requests, live. Without a display, only the address
    is printed.

    \b
    Examples:
      extcli open
      extcli open requests
      extcli open poll final --present
    """
    if (screen == "poll") != bool(name) or (present and not name):
        raise UsageError("only the screen poll takes NAME and --present, and it needs NAME")
    if name:
        query = {"id": name, **_scope_query(session), **({"present": "1"} if present else {})}
        _show_address(session, f"{dashboard_url(session.resolver.url(), 'polls')}?{urlencode(query)}")
    elif screen in SCREENS:
        _show_address(session, dashboard_url(session.resolver.url(), screen))
    else:
        raise UsageError(f"there is no screen {screen[:40]!r}", fix=f"use one of {', '.join(SCREENS)} or poll")


def _scope_query(session: Session) -> dict[str, str]:
    """Return the extension and the channel whose data a page shows."""
    return {"client_id": session.resolver.client_id(), "channel_id": session.resolver.channel() or DEFAULT_CHANNEL}


def _show_address(session: Session, address: str, *, is_opened: bool = True) -> None:
    """Print an address, and open it in the browser unless `is_opened` is false."""
    session.output.show_value({"url": address}, views.SOLE_VALUE)
    if is_opened and not open_page(address):
        session.output.note("no browser was found; open the address yourself")


@shared
def demo(session: Session, stop: bool = flag("--stop", "Stop the running demo.")) -> None:
    """Play a demo stream for three minutes, open it in the browser, and print its address.

    A crowd votes, ranks words, redeems codes and receives broadcasts, in the namespace demo. Some
    votes fail on purpose, and the clock moves an hour between two polls. Each run first deletes all
    data of that namespace. Without a display, only the address is printed.

    \b
    Examples:
      extcli demo
      extcli demo --stop
    """
    if stop:
        session.control().send("POST", "demo/stop")
        return
    session.control().send("POST", "demo")
    service = session.resolver.url().partition("/_ns/")[0]
    _show_address(session, dashboard_url(f"{service}/_ns/demo"))


@shared
def rig(
    session: Session,
    page: str = argument("PAGE", "The URL of the viewers' page."),
    viewers: int = option("--viewers N", "The number of viewers. Each gets a frame.", 2, min=1, max=6),
    config: str = option("--config PAGE", "The config page: a path or a URL.", ""),
    live: str = option("--live PAGE", "The broadcaster's live page: a path or a URL.", ""),
    is_opened: bool = flag("--open", "Also open the printed address in the browser."),
) -> None:
    """Print the address of a page that shows an extension's pages side by side.

    Each frame with the viewers' page acts as a different viewer. The config and live pages act as
    the broadcaster. Serve the pages with any web server. They must load the service's
    /_emulator/platform-helper.js. Sends nothing.

    \b
    Examples:
      extcli rig http://127.0.0.1:8000/panel.html
      extcli rig http://127.0.0.1:8000/panel.html --live live.html --viewers 3
    """
    if not page.startswith(("http://", "https://")):
        raise UsageError(f"{page[:80]!r} is not the URL of a page", fix="begin it with http:// or https://")
    pages = {name: value for name, value in {"url": page, "config": config, "live": live}.items() if value}
    query = urlencode({**pages, "viewers": str(viewers), **_scope_query(session)})
    _show_address(session, f"{dashboard_url(session.resolver.url(), 'rig')}?{query}", is_opened=is_opened)
