"""The result of one check, as JSON and as a table. Texts may quote a service, so they are made safe to print."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from extcli.errors import CliError
from extcli.output.printer import View
from extcli.output.sanitize import field, visible
from extcli.output.views import table_of

if TYPE_CHECKING:
    from rich.console import RenderableType


class Status(StrEnum):
    """The result of a check."""

    OK = "ok"
    NOTE = "note"
    """Works, but may surprise."""
    FAIL = "fail"
    SKIPPED = "skipped"
    """Nothing to check, or an earlier check failed."""


@dataclass(frozen=True, slots=True)
class Finding:
    """What a check found. The texts never contain a secret or token."""

    check: str
    status: Status
    meaning: str
    action: str = ""
    """What to do; empty if there is nothing to do."""

    def as_json(self) -> dict[str, Any]:
        """Return the finding as JSON."""
        return asdict(self)


def failed(check: str, error: CliError) -> Finding:
    """Return a failed check with what the error says."""
    return Finding(check, Status.FAIL, f"{error.what}: {error.why}" if error.why else error.what, error.fix)


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
