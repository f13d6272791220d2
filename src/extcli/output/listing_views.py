"""Views of listings of polls, rankings and buffers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from extcli.output import times
from extcli.output.printer import View
from extcli.output.sanitize import field, visible
from extcli.output.views import table_of

if TYPE_CHECKING:
    from rich.console import RenderableType


def listing(member: str, counted: str, *, status: bool = False) -> View:
    """Return the view of a listing under `member`. `counted` names what its column counts: votes, answers, entries."""
    fields = ["id", "channel_id", "count", *(["status"] if status else []), "latest"]
    columns = ["id", "channel", counted, *(["status"] if status else []), "latest (UTC)"]

    def table(document: dict[str, Any]) -> RenderableType:
        shown = table_of(*columns, right=(2,), folded=(0, 1))
        for each in document[member]:
            latest = times.shown(each["latest"]) if each["latest"] else ""
            texts = {**each, "status": _status(each), "count": f"{each['count']:,}", "latest": latest}
            shown.add_row(*(visible(str(texts[name])) for name in fields))
        return shown if shown.row_count else f"no {member}"

    return View(
        table=table,
        rows=lambda document: [
            [field(_status(each) if name == "status" else each[name]) for name in fields] for each in document[member]
        ],
        items=lambda document: document[member],
    )


def _status(listed: dict[str, Any]) -> str:
    """Return the status of a poll, which refuses votes if it is disabled; empty for other things."""
    return f"{listed.get('status', '')}{', disabled' if listed.get('disabled') else ''}"


VIEWS = {
    "polls": listing("polls", "votes", status=True),
    "rankings": listing("rankings", "answers"),
    "buffers": listing("buffers", "entries"),
}
"""By the member of the answer that has the list."""
