"""Opens pages in the browser of the user."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping

from extcli.config.urls import reachable


def open_page(url: str) -> bool:
    """Open a page in a new tab of the default browser, or of `BROWSER`; return whether there is one."""
    if not has_screen(os.environ, sys.platform):
        return False
    import webbrowser

    try:
        return webbrowser.open_new_tab(url)
    except webbrowser.Error:
        return False


def has_screen(environ: Mapping[str, str], platform: str) -> bool:
    """Whether a browser can show a page. On Linux without a display, a browser would take over the terminal."""
    return platform in ("darwin", "win32") or any(
        environ.get(name) for name in ("BROWSER", "DISPLAY", "WAYLAND_DISPLAY")
    )


def dashboard_of(url: str, screen: str = "overview") -> str:
    """Return the address of a screen of the dashboard of a service."""
    return f"{reachable(url)}/_emulator/{'' if screen == 'overview' else screen if screen == 'rig' else f'ui/{screen}'}"
