"""Opens pages in the browser of the user."""

from __future__ import annotations


def open_page(url: str) -> bool:
    """Open a page in a new tab of the default browser, or of `BROWSER`; return whether there is one."""
    import webbrowser

    try:
        return webbrowser.open_new_tab(url)
    except webbrowser.Error:
        return False
