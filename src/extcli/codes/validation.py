"""What is wrong with the entries of files: all of it counted, twenty named by place and rule, and none quoted."""

from __future__ import annotations

from typing import Any

from extcli.errors import UsageError

_NAMED = 20


class InvalidEntries(UsageError):
    """Files that are not as they should be; nothing was sent."""

    def __init__(self, count: int, named: list[str], fix: str) -> None:
        super().__init__(f"{count:,} fault{'s' * (count != 1)} found, and nothing was sent", fix=fix)
        self._more = count - len(named)
        self._named = named

    def lines(self) -> list[str]:
        more = [f"  and {self._more:,} more"] if self._more else []
        first, *fix = super().lines()
        return [first, *(f"  {fault}" for fault in self._named), *more, *fix]

    def as_json(self) -> dict[str, Any]:
        document = super().as_json()
        document["error"]["faults"] = self._named
        return document


class ValidationErrors:
    """Collects them. A fault quotes nothing: what is at fault may be worth money."""

    def __init__(self) -> None:
        self.count = 0
        self.fix = "correct them and try again"
        self._named: list[str] = []

    @property
    def room(self) -> int:
        """How many more would be named."""
        return _NAMED - len(self._named)

    def add(self, place: str, rule: str) -> None:
        self.count += 1
        if self.room:
            self._named.append(f"{place}: {rule}")

    def add_unnamed(self, count: int) -> None:
        """So many more, whose places nobody will look for."""
        self.count += count

    def check(self) -> None:
        """Raise `InvalidEntries` if there are any."""
        if self.count:
            raise InvalidEntries(self.count, self._named, self.fix)
