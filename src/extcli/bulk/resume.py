"""Knows which lines are processed, so that a run that ended early can be resumed without doing a line twice."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any

_MAX_RANGES = 500
"""Ranges of lines to name, usually all of them: resuming by hand needs each."""


class ResumePoint:
    """Sorts lines into settled, sent but unacknowledged, and not sent."""

    def __init__(self) -> None:
        self._pending: dict[int, None] = {}
        self._unacknowledged: set[int] = set()
        self._last = 0
        self._furthest = 0

    def add(self, numbers: Iterable[int]) -> None:
        """Add the next lines to send, in their order."""
        for number in numbers:
            self._pending[number] = None
            self._last = number

    def mark_sent(self, number: int) -> None:
        """Record that the service may have applied the line."""
        self._unacknowledged.add(number)
        self._furthest = max(self._furthest, number)

    def mark_not_applied(self, number: int) -> None:
        """Record that the service has not applied the line."""
        self._unacknowledged.discard(number)

    def settle(self, number: int) -> None:
        """Record that the service has applied the line, or has refused it for good."""
        self._pending.pop(number, None)
        self._unacknowledged.discard(number)

    @property
    def settled_to(self) -> int:
        """The last line up to which all lines are settled."""
        return min(self._pending, default=self._last + 1) - 1

    @property
    def unacknowledged(self) -> list[int]:
        return sorted(self._unacknowledged)

    @property
    def not_sent(self) -> list[int]:
        """Lines that were not sent although a later one was: users are spread over connections."""
        return sorted(n for n in self._pending if n <= self._furthest and n not in self._unacknowledged)

    def facts(self) -> dict[str, Any]:
        """Return the state for programs."""
        return {
            "dealt_with_to": self.settled_to,
            "unacknowledged": self.unacknowledged,
            "not_sent": self.not_sent,
            "nothing_sent_after": self._furthest,
        }

    def lines(self, repeatable: str) -> list[str]:
        """Return the state for people; `repeatable` says why lines may be sent again, if so."""
        lines = [f"all lines up to {self.settled_to:,} are processed"]
        if self._unacknowledged:
            lines.append(f"  sent but unconfirmed: {_named(self.unacknowledged)}")
        if repeatable and self.settled_to:
            lines.append(f"  to resume, add --skip {self.settled_to}: {repeatable}")
        elif not repeatable:
            if self.not_sent:
                lines.append(f"  not sent: {_named(self.not_sent)}")
            lines.append(f"  nothing was sent after line {self._furthest:,}; --skip {self._furthest} resumes there")
        return lines


def _named(numbers: Sequence[int]) -> str:
    """Return `line 3`, or `lines 3, 5-9`, with at most `_MAX_RANGES` ranges."""
    starts = [0, *(at + 1 for at, (one, other) in enumerate(pairwise(numbers)) if other != one + 1)]
    ranges = [numbers[start:end] for start, end in zip(starts, [*starts[1:], len(numbers)], strict=True)]
    shown = ", ".join(str(each[0]) if len(each) == 1 else f"{each[0]}-{each[-1]}" for each in ranges[:_MAX_RANGES])
    unnamed = sum(map(len, ranges[_MAX_RANGES:]))
    more = f" and {unnamed:,} more (-o json shows all)" if unnamed else ""
    return f"line{'s' * (len(numbers) != 1)} {shown}{more}"
