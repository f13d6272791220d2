"""Views of what the emulator holds, and of what expires next."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from extcli.output import times
from extcli.output.printer import View
from extcli.output.sanitize import field, visible
from extcli.output.views import table_of

if TYPE_CHECKING:
    from rich.console import RenderableType

_COLUMNS = {
    "polls": {"count": "votes", "status": "status"},
    "rankings": {"count": "answers"},
    "buffers": {"count": "entries"},
    "stores": {"user": "user", "size": "bytes"},
    "json_stores": {"size": "bytes"},
    "codes": {"name": "name", "count": "handed out", "left": "left"},
    "pins": {"status": "status"},
}
"""The members and titles between the id and the times of a kind."""
_NUMBERS = frozenset({"count", "left", "size"})


def _counts_table(counts: dict[str, Any]) -> RenderableType:
    table = table_of("", "", right=(1,))
    table.show_header = False
    for name, number in counts.items():
        table.add_row(name.replace("_", " "), f"{number:,}")
    return table


COUNTS = View(table=_counts_table, rows=lambda counts: [(name, field(number)) for name, number in counts.items()])
"""How many things of each kind there are."""


def view_of(kind: str) -> View:
    """Return the view of the list of one kind."""
    own = _COLUMNS[kind]
    members = ["id", "client_id", "channel_id", *own]

    def table(document: dict[str, Any]) -> RenderableType:
        right = [at for at, name in enumerate(members) if name in _NUMBERS]
        titles = ("id", "client id", "channel", *own.values(), "expires (UTC)")
        shown = table_of(*titles, right=right, folded=(0, 1, 2))
        for each in document["rows"]:
            texts = [f"{each[name]:,}" if name in _NUMBERS else visible(each.get(name, "")) for name in members]
            ends = each["expires_at"]
            shown.add_row(*texts, times.shown(ends) if ends else "")
        return shown if shown.row_count else f"no {kind.replace('_', ' ')}"

    def row(each: dict[str, Any]) -> list[str]:
        return [field(each.get(name, "")) for name in (*members, "latest", "expires_at")]

    return View(table=table, rows=lambda document: map(row, document["rows"]), items=lambda document: document["rows"])


_WHOLE = {4: ("client_id", 20), 5: ("channel_id", 12)}
"""Columns that are not broken up to this width: the id is."""


def _coming_table(document: dict[str, Any]) -> RenderableType:
    table = table_of("expires (UTC)", "in", "kind", "id", "client id", "channel", folded=(3, 4, 5))
    for at, (name, most) in _WHOLE.items():
        longest = max((len(visible(each[name])) for each in document["next"]), default=0)
        table.columns[at].min_width = max(table.columns[at].min_width or 0, min(longest, most))
    for each in document["next"]:
        names = (visible(each[name]) for name in ("kind", "id", "client_id", "channel_id"))
        table.add_row(times.shown(each["at"])[:16], times.span(each["at"] - document["now"]), *names)
    return table if table.row_count else "nothing will expire"


COMING = View(
    table=_coming_table,
    rows=lambda document: [
        [field(each[name]) for name in ("at", "kind", "id", "client_id", "channel_id")] for each in document["next"]
    ],
    items=lambda document: document["next"],
)
"""What expires next."""
