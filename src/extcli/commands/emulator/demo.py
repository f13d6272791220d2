"""`extcli demo`: a crowd in a namespace of its own, in the browser."""

from __future__ import annotations

from extcli.cli.shared_options import shared
from extcli.commands.emulator.open import opened
from extcli.running.browser import dashboard_of
from extcli.session import Session


@shared
def demo(session: Session) -> None:
    """Play a demo stream in the browser, and print its address.

    The page sends a seeded crowd into the namespace demo: it votes, ranks words, redeems
    codes and hears broadcasts, for three minutes at most. Without a display, only the
    address is printed, and the page plays when you open it.

    \b
    Examples:
      extcli demo
    """
    service = session.resolver.url().partition("/_ns/")[0]
    opened(session, dashboard_of(f"{service}/_ns/demo") + "?play=1")
