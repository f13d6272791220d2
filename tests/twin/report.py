"""Collects what was compared and what differed, and prints it."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from twin.changes import Changes
from twin.comparing import Difference

PRINTED, MOST = 100, 5
"""Places with unlisted differences that are printed, and differences at one of them; the rest are counted."""


class Finding(NamedTuple):
    """Unlisted differences at one place, and how one gets there."""

    part: str
    differences: list[Difference]
    steps: list[str]
    again: str


class Report:
    """The result of a job, or of several."""

    def __init__(self, changes: Changes) -> None:
        self.changes = changes
        self.counts: Counter[str] = Counter()
        """What was compared, by the words that the report prints."""
        self.seconds = self.processor_seconds = 0.0
        self._findings: list[Finding] = []
        self._known: set[Difference] = set()
        self._printed = 0

    def found(self, part: str, where: str, what: Sequence[str], steps: Sequence[str], again: str) -> bool:
        """Record the differences at one place, and return whether entries excuse all of them."""
        differences = [Difference(where, each) for each in what]
        unlisted = [each for each in differences if not self.changes.excuse(each)]
        self.counts["listed differences"] += len(what) - len(unlisted)
        if not unlisted:
            return True
        self.counts["unlisted differences"] += len(unlisted)
        self._findings.append(Finding(part, unlisted, list(steps), again))
        return False

    def add(self, title: str, other: Report) -> None:
        """Add the report of a job, and print the differences that are new in it."""
        self.counts.update(other.counts)
        self.changes.used.update(other.changes.used)
        for finding in other._findings:
            self._print(finding)
        _say(f"{title}: {other.seconds:.0f} s")

    def _print(self, finding: Finding) -> None:
        new = [each for each in finding.differences if each not in self._known]
        self._known.update(new)
        if not new or self._printed == PRINTED:
            return
        self._printed += 1
        _say("")
        for difference in new[:MOST]:
            _say(f"{finding.part}: {difference}")
        if len(new) > MOST:
            _say(f"    and {len(new) - MOST} more there")
        for text in finding.steps:
            _say(f"    {text}")
        _say(f"    again: {finding.again}")

    def finish(self, *, whole: bool) -> int:
        """Print the counts, and return the exit code."""
        _say("")
        for name, count in self.counts.items():
            _say(f"{count:>8,}  {name}")
        for entry in self.changes.entries:
            count = self.changes.used[entry]
            if count:
                _say(f"{count:>8,}  excused: {entry.where}: {entry.what}")
            elif whole:
                _say(f"       0  excused nothing, so it may be wrong or too narrow: {entry.where}: {entry.what}")
        _say(f"\n{self.seconds:.0f} s, of which the processor worked {self.processor_seconds:.0f} s")
        if self.counts["unlisted differences"]:
            _say("The versions differ. List what is intended in docs/changes.toml, and mend the rest.")
            return 1
        _say("No unlisted difference.")
        return 0


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()
