"""`extcli open`: the dashboard in the browser."""

from __future__ import annotations

from difflib import get_close_matches
from typing import Annotated
from urllib.parse import urlencode

import typer

from extcli.cli.shared_options import shared
from extcli.config.settings import DEFAULT_CHANNEL
from extcli.errors import UsageError
from extcli.output import views
from extcli.running.browser import dashboard_of, open_page
from extcli.session import Session

SCREENS = (
    "overview", "polls", "rankings", "buffers", "stores", "codes", "pins", "requests", "broadcasts", "sockets",
    "clock", "faults", "namespaces", "rig",
)  # fmt: skip
"""The screens of the dashboard."""
POLL = "poll"
"""Stands for the page of one poll, whose name follows."""


@shared
def open(
    session: Session,
    screen: Annotated[str, typer.Argument(metavar="SCREEN", help="polls, requests, clock… Default: overview.")] = (
        "overview"
    ),
    name: Annotated[str | None, typer.Argument(metavar="NAME", help="With poll: the poll's id.")] = None,
    is_presented: Annotated[
        bool, typer.Option("--present", help="With poll: its question and results alone, for a stream or a wall.")
    ] = False,
) -> None:
    """Open the dashboard of the emulator in the browser, and print its address. Sends nothing.

    The dashboard shows live what the emulator holds, and what it was sent. Without a
    display, only the address is printed.

    \b
    Examples:
      extcli open
      extcli open requests
      extcli open poll final --present
    """
    if screen == POLL and name is not None:
        place = {"client_id": session.resolver.client_id(), "channel_id": session.resolver.channel() or DEFAULT_CHANNEL}
        query = {"id": name, **place, **({"present": "1"} if is_presented else {})}
        return opened(session, f"{dashboard_of(session.resolver.url(), 'polls')}?{urlencode(query)}")
    if name is not None or is_presented:
        raise UsageError("a name and --present are for a poll", fix="extcli open poll NAME --present")
    if screen not in SCREENS:
        near = get_close_matches(screen, (*SCREENS, POLL), 1)
        hint = f"did you mean {near[0]}?" if near else f"use one of {', '.join(SCREENS)}"
        raise UsageError(f"there is no screen {screen[:40]!r}", fix=hint)
    opened(session, dashboard_of(session.resolver.url(), screen))


def opened(session: Session, address: str) -> None:
    """Print an address, and open it in the browser."""
    session.output.show_value({"url": address}, views.SOLE_VALUE)
    if not open_page(address):
        session.output.note("no browser was found; open the address yourself")
