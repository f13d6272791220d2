"""`extcli open`: the dashboard in the browser."""

from __future__ import annotations

from difflib import get_close_matches
from typing import Annotated

import typer

from extcli.cli.shared_options import shared
from extcli.errors import UsageError
from extcli.output import views
from extcli.running.browser import dashboard_of, open_page
from extcli.session import Session

SCREENS = (
    "overview", "polls", "rankings", "buffers", "stores", "codes", "pins", "requests", "broadcasts", "sockets",
    "clock", "faults", "namespaces", "rig",
)  # fmt: skip
"""The screens of the dashboard."""


@shared
def open(
    session: Session,
    screen: Annotated[str, typer.Argument(metavar="SCREEN", help="polls, requests, clock… Default: overview.")] = (
        "overview"
    ),
) -> None:
    """Open the dashboard of the emulator in the browser, and print its address. Sends nothing.

    The dashboard shows live what the emulator holds, and what it was sent. Without a
    display, only the address is printed.

    \b
    Examples:
      extcli open
      extcli open requests
    """
    if screen not in SCREENS:
        near = get_close_matches(screen, SCREENS, 1)
        hint = f"did you mean {near[0]}?" if near else f"use one of {', '.join(SCREENS)}"
        raise UsageError(f"there is no screen {screen[:40]!r}", fix=hint)
    opened(session, dashboard_of(session.resolver.url(), screen))


def opened(session: Session, address: str) -> None:
    """Print an address, and open it in the browser."""
    session.output.show_value({"url": address}, views.SOLE_VALUE)
    if not open_page(address):
        session.output.note("no browser was found; open the address yourself")
