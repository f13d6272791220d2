"""Reads PINs from a prompt or a pipe, never from the command line, and prints PINs, links and events."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, TypeVar

from extcli.errors import CliError, Refused, UsageError
from extcli.output import times
from extcli.output.columns import Column, listing, shown
from extcli.output.printer import View, write_stderr
from extcli.output.sanitize import compact, field, json_text, visible
from extcli.output.views import RECORD
from extcli.session import Session

if TYPE_CHECKING:
    from rich.console import RenderableType

    from extcli.api.envelope import Message
    from extcli.config.link_store import Link

LIFETIME = 5 * 60_000
"""The lifetime of a PIN in ms (ruling T1)."""

_LENGTH = 6
_RETRIES = 3
_MAX_LINE = 200
_AMBIGUOUS = {
    "I": "the letter I, or a one",
    "L": "the letter L, or a one",
    "O": "the letter O, or a zero",
    "0": "a zero, or the letter O",
    "1": "a one, or the letter I",
    "5": "a five, or the letter S",
}
"""Characters that PINs of this service never contain, because they are easily confused (ruling T1)."""
_ORDINALS = ("first", "second", "third", "fourth", "fifth", "sixth")

T = TypeVar("T")


def ask_for_pin(session: Session, argument: str | None, shown_by: str, use: Callable[[str], T]) -> T:
    """Read a PIN and return `use(pin)`. On a terminal a refused PIN can be retyped three times.

    `shown_by` names what shows the PIN, for the prompt.
    """
    if argument not in (None, "-"):
        raise UsageError(
            "a PIN cannot be given on the command line",
            why="process lists and shell histories show it",
            fix="type it at the prompt, or pipe it in",
        )
    if sys.__stdin__ is None:
        raise UsageError("standard input is closed", fix="type the PIN at the prompt, or pipe it in")
    left = _RETRIES if sys.stdin.isatty() else 0
    while True:
        try:
            pin = checked_pin(_typed_pin(f"The PIN that {shown_by} shows: "))
            for warning in warnings_about(pin):
                session.output.report(warning)
            return use(pin)
        except CliError as error:
            refused = isinstance(error, Refused) and error.status == 400
            if refused:
                error.fix = f"PINs expire after five minutes: request a new one in {shown_by}"
            if not (left and (refused or isinstance(error, _InvalidPin))):
                raise
            write_stderr(error.lines())
            left -= 1


class _InvalidPin(UsageError):
    """Raised for input that cannot be a PIN."""


def checked_pin(text: str) -> str:
    """Return the PIN. Raises `UsageError`, without quoting it, unless it is six letters or digits."""
    if not text:
        raise UsageError("no PIN was given", why="standard input is empty", fix="type it at the prompt, or pipe it in")
    if len(text) != _LENGTH or not (text.isascii() and text.isalnum()):
        raise _InvalidPin(
            "this is not a PIN",
            why=f"a PIN is {_LENGTH} letters and digits",
            fix="pipe in the PIN alone: `extcli pin request -o plain`, or with --game its first column, `cut -f1`",
        )
    return text


def warnings_about(pin: str) -> Iterator[str]:
    """Yield likely typing errors. The PIN is sent anyway: other deployments use all letters and digits."""
    for place, character in zip(_ORDINALS, pin, strict=False):
        if doubt := _AMBIGUOUS.get(character.upper()):
            yield f"is the {place} character {doubt}? most PINs have neither"
    if pin != pin.upper():
        yield "PINs are case-sensitive, and those of an emulator are upper case; this one is sent as typed"


def _typed_pin(prompt: str) -> str:
    if sys.stdin.isatty():
        sys.stderr.write(prompt)
        sys.stderr.flush()
    return sys.stdin.buffer.readline(_MAX_LINE).decode(errors="replace").strip()


_INSTANT_WIDTH, _SCOPE_WIDTH = len("2026-11-20 20:15:00.250Z"), len("extension")
_SERVICE, _CLIENT_ID, _CHANNEL, _SINCE, _UNTIL = "service", "client_id", "channel_id", "since", "until"


# Events


def event_of(update: Message) -> dict[str, Any]:
    """Return the facts of an update, with defaults for what a deployment omits."""
    meta = update.document["meta"]
    defaults = {"event": meta.get("target", ""), "data": None, "channel_id": "", "scope": ""}
    return {"timestamp": meta.get("timestamp", 0), **defaults, **update.data}


def _event_line(event: dict[str, Any]) -> str:
    instant = times.shown(event["timestamp"]) if isinstance(event["timestamp"], int) else ""
    scope, name = visible(str(event["scope"])), visible(str(event["event"]))
    return f"{instant:<{_INSTANT_WIDTH}}  {scope:<{_SCOPE_WIDTH}}  {name}  {visible(compact(event['data']))}"


EVENT = View(table=_event_line, rows=lambda event: [(field(event["event"]), json_text(event["data"]))])


# PINs


def _pin_table(pin: str, next_step: str) -> RenderableType:
    from rich.console import Group
    from rich.panel import Panel
    from rich.text import Text

    panel = Panel.fit(Text(visible(pin), style="bold"), padding=(1, 6))
    return Group(panel, *[Text(line, overflow="fold") for line in (f"valid for {times.span(LIFETIME)}", next_step)])


PIN = View(
    table=lambda document: _pin_table(document["pin"], "next: type it into the game, or into `extcli pin login`"),
    rows=lambda document: [(field(document["pin"]),)],
)
"""A PIN for a game to send."""

PIN_AND_TOKEN = View(
    table=lambda document: _pin_table(
        document["pin"], "next: the broadcaster types it into the extension, or into `extcli pin validate`"
    ),
    rows=lambda document: [(field(document["pin"]), field(document["token"]))],
)
"""A PIN for a broadcaster to type, and the game's token, which the command prints below the table on one line."""

LINKED = View(
    table=lambda document: "linked" if document["exists"] is True else "not linked",
    rows=lambda document: [(field(document["exists"]),)],
)


# Links


def _local_time(milliseconds: int | None) -> str:
    return "unknown" if milliseconds is None else times.shown(milliseconds)


LOGIN = View(
    table=lambda login: RECORD.table(
        {
            "channel": login[_CHANNEL] + (f" ({login['name']})" if login["name"] != login[_CHANNEL] else ""),
            "access until": _local_time(login["access_until"]),
            "refresh until": _local_time(login["refresh_until"]),
        }
    ),
    rows=lambda login: [(field(name), field(value)) for name, value in login.items()],
)
"""The channel that a game is linked to, and when its tokens expire."""


def facts_of(link: Link) -> dict[str, Any]:
    """Return a link as a record without its token."""
    return {
        _SERVICE: link.service,
        _CLIENT_ID: link.client_id,
        _CHANNEL: link.channel_id,
        _SINCE: link.since,
        _UNTIL: link.until,
    }


def _day(milliseconds: int | None) -> str:
    return _local_time(milliseconds)[:10]


LINKS = listing(
    "",
    Column("service", text=shown, folds=True),
    Column("client id", _CLIENT_ID, text=shown, folds=True),
    Column("channel", _CHANNEL, text=shown, folds=True),
    Column("since", text=_day, folds=True),
    Column("until", text=_day, folds=True),
    else_shown="no links are stored",
)
