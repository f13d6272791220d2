"""The view of findings. Texts may quote a service, so they are made safe to print."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from extcli.doctor.findings import Status
from extcli.output.printer import View
from extcli.output.sanitize import field, visible
from extcli.output.views import table_of

if TYPE_CHECKING:
    from rich.console import RenderableType

_STYLES = {Status.OK: "green", Status.NOTE: "yellow", Status.FAIL: "bold red", Status.SKIPPED: "dim"}


def _table(document: dict[str, Any]) -> RenderableType:
    from rich.text import Text

    table = table_of("", "check", "meaning, and what to do", folded=(2,))
    for each in document["checks"]:
        text = visible(each["meaning"]) + (f"\n→ {visible(each['action'])}" if each["action"] else "")
        table.add_row(Text(each["status"], _STYLES[each["status"]]), each["check"], text)
    return table


def _row(finding: dict[str, Any]) -> list[str]:
    return [field(finding[name]) for name in ("status", "check", "meaning", "action")]


FINDINGS = View(
    table=_table,
    rows=lambda document: map(_row, document["checks"]),
    items=lambda document: document["checks"],
)
