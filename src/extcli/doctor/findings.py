"""The result of one check, as JSON and as a table. Texts may quote a service, so they are made safe to print."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from extcli.errors import CliError
from extcli.output.columns import Column, listing
from extcli.output.sanitize import visible

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


def _styled(status: str) -> RenderableType:
    from rich.text import Text

    return Text(status, _STYLES[Status(status)])


def _advice(finding: dict[str, Any]) -> str:
    return visible(finding["meaning"]) + (f"\n→ {visible(finding['action'])}" if finding["action"] else "")


FINDINGS = listing(
    "checks",
    Column("status", heading="", text=_styled),
    Column("check", text=str),
    Column("meaning", heading=None),
    Column("", _advice, "meaning, and what to do", str, folds=True),
    Column("action", heading=None),
)
