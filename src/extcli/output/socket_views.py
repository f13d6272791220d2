"""Views of the open sockets of a service."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from extcli.output import times
from extcli.output.printer import View
from extcli.output.sanitize import field, visible
from extcli.output.views import stacked, table_of

if TYPE_CHECKING:
    from rich.console import RenderableType

_CALLER = ("number", "kind", "client_id", "role", "channel_id")
_NUMBERS = ("requests", "frames", "unread")


def _table(document: dict[str, Any]) -> RenderableType:
    """Return a table, and below it what each socket follows: there may be many topics."""
    columns = ("", "kind", "client id", "role", "channel", "user", "in", "out", "unread", "opened")
    table = table_of(*columns, right=(0, 6, 7, 8), folded=(2, 4, 5))
    follows = []
    for each in document["sockets"]:
        texts = [visible(str(each[name])) for name in (*_CALLER, "user_id", *_NUMBERS)]
        table.add_row(*texts, times.shown(each["opened_at"])[11:19])
        topics = visible(", ".join(each["subscriptions"])) or "nothing"
        follows.append(f"{each['number']} {'is stalled, and ' if each['stalled'] else ''}follows {topics}")
    if hidden := document["total"] - table.row_count:
        table.add_row("", f"{hidden:,} more")
    return stacked(table, "\n".join(follows)) if table.row_count else "no open sockets"


def _row(each: dict[str, Any]) -> list[str]:
    state = "stalled" if each["stalled"] else "open"
    fields = (field(each[name]) for name in (*_CALLER, *_NUMBERS))
    return [*fields, state, field(" ".join(each["subscriptions"])), field(each["user_id"])]


SOCKETS = View(
    table=_table,
    rows=lambda document: map(_row, document["sockets"]),
    items=lambda document: document["sockets"],
)

SELECTED = View(
    table=lambda document: ", ".join(map(str, document["sockets"])) or "no open sockets",
    rows=lambda document: [(field(number),) for number in document["sockets"]],
    items=lambda document: document["sockets"],
)
"""The numbers of sockets that were closed, stalled or released."""
