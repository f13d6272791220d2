"""The errors of a file, each with its line, column and field."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from extcli.errors import UsageError

MAX_NAMED = 50
"""Errors named for one file; others are counted."""


class InvalidFile(UsageError):
    """A file with errors. Nothing was changed."""

    def __init__(self, name: str, faults: Sequence[str]) -> None:
        count = len(faults)
        super().__init__(f"{name} has {count:,} error{'s' * (count != 1)}; nothing was changed")
        self.faults = list(faults)
        """One line each: file, line, column, field, what is wrong and what is allowed."""

    def lines(self) -> list[str]:
        return [*super().lines(), *(f"  {each}" for each in self._named())]

    def as_json(self) -> dict[str, Any]:
        document = super().as_json()
        document["error"]["faults"] = self._named()
        return document

    def __str__(self) -> str:
        return "\n".join([self.what, *(f"  {each}" for each in self._named())])

    def _named(self) -> list[str]:
        more = len(self.faults) - MAX_NAMED
        return [*self.faults[:MAX_NAMED], *([f"and {more:,} more"] if more > 0 else [])]
