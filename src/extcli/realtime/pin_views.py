"""How PINs and links look: a PIN large enough to be read across a desk, links without their tokens."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from extcli.output import times
from extcli.output.printer import View
from extcli.output.sanitize import field, visible
from extcli.output.views import RECORD
from extcli.realtime.pins import LIFETIME

if TYPE_CHECKING:
    from rich.console import RenderableType

    from extcli.config.link_store import Link

_SERVICE, _CLIENT_ID, _CHANNEL, _SINCE, _UNTIL = "service", "client_id", "channel_id", "since", "until"


def _pin_table(pin: str, *under: str) -> RenderableType:
    from rich.console import Group
    from rich.panel import Panel
    from rich.text import Text

    panel = Panel.fit(Text(visible(pin), style="bold"), padding=(1, 6))
    return Group(panel, *[Text(line, overflow="fold") for line in (f"valid for {times.span(LIFETIME)}", *under)])


PIN = View(
    table=lambda document: _pin_table(document["pin"], "next: type it into the game, or into `extcli pin login`"),
    rows=lambda document: [(field(document["pin"]),)],
)
"""A PIN that a game is to send; for scripts the PIN alone."""

PIN_AND_TOKEN = View(
    table=lambda document: _pin_table(
        document["pin"],
        "next: the broadcaster types it into the extension, or into `extcli pin validate`",
    ),
    rows=lambda document: [(field(document["pin"]), field(document["token"]))],
)
"""A PIN that a broadcaster is to type, and the token that waits for it, which a table has no room for."""

LINKED = View(
    table=lambda document: "linked" if document["exists"] is True else "not linked",
    rows=lambda document: [(field(document["exists"]),)],
)


def _when(milliseconds: int | None) -> str:
    return "unknown" if milliseconds is None else times.shown(milliseconds)


def _day(milliseconds: int | None) -> str:
    return _when(milliseconds)[:10]


LOGIN = View(
    table=lambda login: RECORD.table(
        {
            "channel": login[_CHANNEL] + (f" ({login['name']})" if login["name"] != login[_CHANNEL] else ""),
            "access until": _when(login["access_until"]),
            "refresh until": _when(login["refresh_until"]),
        }
    ),
    rows=lambda login: [(field(name), field(value)) for name, value in login.items()],
)
"""Which channel a game is linked to, and for how long."""


def facts_of(link: Link) -> dict[str, Any]:
    """What may be shown of a link: all but its token."""
    return {
        _SERVICE: link.service,
        _CLIENT_ID: link.client_id,
        _CHANNEL: link.channel_id,
        _SINCE: link.since,
        _UNTIL: link.until,
    }


def _links_table(links: Sequence[dict[str, Any]]) -> RenderableType:
    from rich.table import Table

    if not links:
        return "no links are kept"
    table = Table(box=None, pad_edge=False, header_style="dim")
    for name in ("service", "client id", "channel", "since", "until"):
        table.add_column(name, overflow="fold")
    for link in links:
        names = [visible(str(link[name])) for name in (_SERVICE, _CLIENT_ID, _CHANNEL)]
        table.add_row(*names, _day(link[_SINCE]), _day(link[_UNTIL]))
    return table


LINKS = View(
    table=_links_table,
    rows=lambda links: [[field(value) for value in link.values()] for link in links],
    items=lambda links: links,
)
