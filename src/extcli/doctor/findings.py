"""The result of one check."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

from extcli.errors import CliError


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
