"""The intended differences: `docs/changes.toml`."""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from fnmatch import fnmatchcase
from pathlib import Path
from typing import NamedTuple

from twin.comparing import Difference
from twin.environment import ROOT, Missing

FILE = ROOT / "docs" / "changes.toml"
MEMBERS = {"where", "match", "what", "why"}


class Change(NamedTuple):
    """One entry of the file."""

    where: str
    match: str
    what: str
    why: str

    def excuses(self, difference: Difference) -> bool:
        if self.where == "*" and difference.what.startswith("status: "):
            return False  # it quotes the refusal, whose text may be listed everywhere; its status may not
        if not fnmatchcase(difference.where, self.where.replace("[", "[[]")):
            return False
        if len(self.match) > 1 and self.match.startswith("/") and self.match.endswith("/"):
            return re.search(self.match[1:-1], difference.what) is not None
        return self.match in difference.what


class Changes:
    """All entries, and how often each excused a difference."""

    def __init__(self, entries: list[Change]) -> None:
        self.entries = entries
        self.used: Counter[Change] = Counter()

    def excuse(self, difference: Difference) -> bool:
        """Return whether an entry lists the difference, and count it."""
        entry = self._entry(difference)
        if entry:
            self.used[entry] += 1
        return entry is not None

    def lists(self, difference: Difference) -> bool:
        """Return whether an entry lists the difference."""
        return self._entry(difference) is not None

    def _entry(self, difference: Difference) -> Change | None:
        return next((each for each in self.entries if each.excuses(difference)), None)


def read(path: Path = FILE) -> Changes:
    """Read the file. Raises `Missing` for an entry that is not as the comment at its top says."""
    entries = []
    for number, table in enumerate(tomllib.loads(path.read_text("utf-8")).get("change", []), 1):
        if unknown := table.keys() - MEMBERS:
            raise Missing(f"{path}: change {number} has an unknown field {min(unknown)!r}")
        if absent := {"where", "what", "why"} - {name for name, value in table.items() if value}:
            raise Missing(f"{path}: change {number} has no {min(absent)!r}")
        entries.append(Change(table["where"], table.get("match", ""), table["what"], table["why"]))
    return Changes(entries)
