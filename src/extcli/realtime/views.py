"""Prints PINs, links and events."""

from __future__ import annotations

from typing import TYPE_CHECKING

from emulator.contract.limits import PIN_LIFETIME
from extcli.output import times
from extcli.output.columns import Column, listing
from extcli.output.printer import RenderableType, View
from extcli.output.sanitize import compact, field, json_text, visible
from extcli.output.views import RECORD, member_view
from extcli.reading import Json

if TYPE_CHECKING:
    from extcli.api.websocket import Message
    from extcli.config.link_store import Link

_INSTANT_WIDTH, _SCOPE_WIDTH = len("2026-11-20 20:15:00.250Z"), len("extension")


# Events


def event_facts(update: Message) -> Json:
    """Return the facts of an update, with defaults for what a deployment omits."""
    meta = update.document["meta"]
    defaults = {"event": meta.get("target", ""), "data": None, "channel_id": "", "scope": ""}
    return {"timestamp": meta.get("timestamp", 0), **defaults, **update.data}


def _event_line(event: Json) -> str:
    instant = times.utc_text(event["timestamp"]) if isinstance(event["timestamp"], int) else ""
    scope, name = visible(str(event["scope"])), visible(str(event["event"]))
    return f"{instant:<{_INSTANT_WIDTH}}  {scope:<{_SCOPE_WIDTH}}  {name}  {visible(compact(event['data']))}"


EVENT = View(table=_event_line, rows=lambda event: [(field(event["event"]), json_text(event["data"]))])


# PINs


def _pin_table(pin: str, next_step: str) -> RenderableType:
    from rich.console import Group
    from rich.panel import Panel
    from rich.text import Text

    panel = Panel.fit(Text(visible(pin), style="bold"), padding=(1, 6))
    lines = f"valid for {times.duration_text(PIN_LIFETIME)}", next_step
    return Group(panel, *[Text(line, overflow="fold") for line in lines])


_TO_GAME = "next: type it into the game, or into `extcli pin login`"
_TO_PAGE = "next: the broadcaster types it into the extension, or into `extcli pin validate`"
PIN = member_view("pin", lambda document: _pin_table(document["pin"], _TO_GAME))
"""A PIN for a game to send."""

PIN_AND_TOKEN = View(
    table=lambda document: _pin_table(document["pin"], _TO_PAGE),
    rows=lambda document: [(field(document["pin"]), field(document["token"]))],
)
"""A PIN for a broadcaster to type, and the game's token, which the command prints below the table on one line."""

LINKED = member_view("exists", lambda document: "linked" if document["exists"] is True else "not linked")


# Links


def _local_time(milliseconds: int | None) -> str:
    return "unknown" if milliseconds is None else times.utc_text(milliseconds)


def _login_table(login: Json) -> RenderableType:
    ends = {name: _local_time(login[name]) for name in ("access_until", "refresh_until")}
    return RECORD.table(login | ends)


LOGIN = View(table=_login_table, rows=RECORD.rows)
"""The channel that a game is linked to, and when its tokens expire."""


def link_facts(link: Link) -> Json:
    """Return a link as a record without its token."""
    return {name: getattr(link, name) for name in ("service", "client_id", "channel_id", "since", "until")}


def _day(milliseconds: int | None) -> str:
    return _local_time(milliseconds)[:10]


LINKS = listing(
    "",
    Column("service"),
    Column("client id", "client_id"),
    Column("channel", "channel_id"),
    Column("since", text=_day),
    Column("until", text=_day),
    else_shown="no links are stored",
)
