"""The view of the services that run under a name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from extcli.output import times
from extcli.output.printer import View
from extcli.output.sanitize import field, visible
from extcli.output.views import table_of

if TYPE_CHECKING:
    from rich.console import RenderableType

NO_SERVICES = "no service runs under a name: `extcli serve --name NAME` starts one"
_FIELDS = ("name", "pid", "url", "started", "environment", "data")


def services_view(now: int) -> View:
    """Return the view; `now` in Unix ms is subtracted from the start."""

    def table(document: dict[str, Any]) -> RenderableType:
        shown = table_of("name", "pid", "url", "up", "environment", "data", folded=(0, 5))
        for each in document["services"]:
            up = times.span(max(now - each["started"], 0) // 1_000 * 1_000)
            url = each["url"] or "starting"
            texts = (each["name"], str(each["pid"]), url, up, each["environment"], each["data"])
            shown.add_row(*map(visible, texts))
        return shown if shown.row_count else NO_SERVICES

    return View(
        table=table,
        rows=lambda document: [[field(each[name]) for name in _FIELDS] for each in document["services"]],
        items=lambda document: document["services"],
    )
