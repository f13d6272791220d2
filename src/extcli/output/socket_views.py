"""Views of the open sockets of a service."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from extcli.output import times
from extcli.output.printer import View
from extcli.output.sanitize import field, visible
from extcli.output.views import table_of

if TYPE_CHECKING:
    from rich.console import RenderableType

_FIELDS = ("number", "kind", "client_id", "role", "channel_id", "requests", "frames", "unread")


def _table(document: dict[str, Any]) -> RenderableType:
    columns = ("", "kind", "client id", "role", "channel", "in", "out", "unread", "opened (UTC)", "follows")
    table = table_of(*columns, right=(0, 5, 6, 7), folded=(2, 4, 9))
    for each in document["sockets"]:
        texts = [visible(str(each[name])) for name in _FIELDS]
        follows = ", ".join(each["subscriptions"]) + (" (stalled)" if each["stalled"] else "")
        table.add_row(*texts, times.shown(each["opened_at"]), visible(follows.strip()))
    if hidden := document["total"] - table.row_count:
        table.add_row("", f"{hidden:,} more")
    return table if table.row_count else "no open sockets"


def _row(each: dict[str, Any]) -> list[str]:
    state = "stalled" if each["stalled"] else "open"
    return [*(field(each[name]) for name in _FIELDS), state, field(" ".join(each["subscriptions"]))]


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
