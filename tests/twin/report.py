"""Collects what was compared and what differed, and prints it."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence

from twin.changes import Changes
from twin.comparing import Difference

PRINTED, MOST = 30, 5
"""Places with unlisted differences that are printed, and differences at one of them; the rest are counted."""


class Report:
    """The result of a run."""

    def __init__(self, changes: Changes, *, verbose: bool = False) -> None:
        self.changes = changes
        self.counts: Counter[str] = Counter()
        """What was compared, by the words that the report prints."""
        self.unlisted: list[Difference] = []
        self._known: set[tuple[str, str]] = set()
        self._printed = 0
        self._verbose = verbose

    def say(self, text: str) -> None:
        sys.stdout.write(f"{text}\n")
        sys.stdout.flush()

    def step(self, text: str) -> None:
        """Print a step, if the reader wants to see each."""
        if self._verbose:
            self.say(text)

    def found(self, part: str, where: str, what: Sequence[str], steps: Sequence[str], again: str) -> bool:
        """Record the differences at one place, and return whether entries excuse all of them."""
        unlisted = [each for each in what if not self.changes.excuse(Difference(where, each))]
        self.counts["listed differences"] += len(what) - len(unlisted)
        if not unlisted:
            return True
        self.counts["unlisted differences"] += len(unlisted)
        self.unlisted += [Difference(where, each) for each in unlisted]
        new = [each for each in unlisted if (where, each) not in self._known]
        self._known.update((where, each) for each in unlisted)
        if new and self._printed < PRINTED:
            self._printed += 1
            self.say("")
            for text in new[:MOST]:
                self.say(f"{part}: {Difference(where, text)}")
            if len(new) > MOST:
                self.say(f"    and {len(new) - MOST} more there")
            for text in steps:
                self.say(f"    {text}")
            self.say(f"    again: {again}")
        return False

    def finish(self, *, whole: bool) -> int:
        """Print the counts, and return the exit code."""
        self.say("")
        for name, count in self.counts.items():
            self.say(f"{count:>8,}  {name}")
        for entry in self.changes.entries:
            count = self.changes.used[entry]
            if count:
                self.say(f"{count:>8,}  excused: {entry.where}: {entry.what}")
            elif whole:
                self.say(f"       0  excused nothing, so it may be wrong or too narrow: {entry.where}: {entry.what}")
        if self.counts["unlisted differences"]:
            self.say("\nThe versions differ. List what is intended in docs/changes.toml, and mend the rest.")
            return 1
        self.say("\nNo unlisted difference.")
        return 0
