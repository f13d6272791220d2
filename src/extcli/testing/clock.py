"""The clock of a namespace."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from extcli.api.control import Control
from extcli.output import times
from extcli.testing.calls import document
from extcli.testing.operation import ModeT, Part, operation


class Clock(Part[ModeT]):
    """Moves the time of one namespace. Each move returns what expired, once it has expired."""

    def __init__(self, control: Control, *, awaited: bool) -> None:
        super().__init__(awaited=awaited)
        self._control = control

    @operation
    def now(self) -> int:
        """Return the time in Unix ms."""
        return self._now()

    @operation
    def advance(self, by: str | timedelta) -> list[dict[str, Any]]:
        """Move forward: `"8d"`, `"1h30m"`, `"500ms"` or a timedelta."""
        ms = times.duration(by) if isinstance(by, str) else by // timedelta(milliseconds=1)
        return self._move({"advance": ms})

    @operation
    def set(self, to: str | int | datetime) -> list[dict[str, Any]]:
        """Set the time: RFC 3339, Unix ms or a datetime. The clock runs on from there, unless it is frozen."""
        return self._move({"set": self._instant(to)})

    @operation
    def freeze(self, at: str | int | datetime | None = None) -> list[dict[str, Any]]:
        """Stop the clock, at the present or at this time."""
        return self._move({"freeze": True} if at is None else {"freeze": True, "set": self._instant(at)})

    @operation
    def unfreeze(self) -> list[dict[str, Any]]:
        """Let the clock run on."""
        return self._move({"freeze": False})

    def _now(self) -> int:
        return int(document(self._control.read_clock())["now"])

    def _instant(self, at: str | int | datetime) -> int:
        if isinstance(at, datetime):
            return round(at.timestamp() * 1000)
        return at if isinstance(at, int) else times.instant(at, self._now)

    def _move(self, change: Mapping[str, Any]) -> list[dict[str, Any]]:
        return list(document(self._control.move_clock(change))["expired"])
