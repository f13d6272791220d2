"""How far many lines came that end early, so that somebody can go on from there and do none of them twice."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any

_NAMED = 500
"""Runs of lines, which is all of them as a rule: whoever goes on by hand needs each."""


class ResumePoint:
    """Which lines are dealt with, which were sent and not acknowledged, and which were not sent."""

    def __init__(self) -> None:
        self._open: dict[int, None] = {}
        self._unacknowledged: set[int] = set()
        self._last = 0
        self._furthest = 0

    def begin(self, numbers: Iterable[int]) -> None:
        """These lines, in their order, are to be sent."""
        for number in numbers:
            self._open[number] = None
            self._last = number

    def send(self, number: int) -> None:
        """From here on the line may have been done."""
        self._unacknowledged.add(number)
        self._furthest = max(self._furthest, number)

    def take_back(self, number: int) -> None:
        """The service said that it did not do it."""
        self._unacknowledged.discard(number)

    def settle(self, number: int) -> None:
        """The service did it, or will never do it."""
        self._open.pop(number, None)
        self._unacknowledged.discard(number)

    @property
    def dealt_with(self) -> int:
        """The last line before which, itself included, all are settled."""
        return min(self._open, default=self._last + 1) - 1

    @property
    def unacknowledged(self) -> list[int]:
        return sorted(self._unacknowledged)

    @property
    def left_out(self) -> list[int]:
        """Lines that were not sent, in between others that were: each user's go by another connection."""
        return sorted(n for n in self._open if n <= self._furthest and n not in self._unacknowledged)

    def facts(self) -> dict[str, Any]:
        """For a program that goes on."""
        return {
            "dealt_with_to": self.dealt_with,
            "unacknowledged": self.unacknowledged,
            "not_sent": self.left_out,
            "nothing_sent_after": self._furthest,
        }

    def remarks(self, again: str) -> list[str]:
        """For a person who goes on; `again` says why lines may be sent again, where they may."""
        remarks = [f"every line up to {self.dealt_with:,} is dealt with"]
        if self._unacknowledged:
            remarks.append(f"  sent, not acknowledged, and so done or not: {_named(self.unacknowledged)}")
        if again and self.dealt_with:
            remarks.append(f"  to go on, add --skip {self.dealt_with}: {again}")
        elif not again:
            if self.left_out:
                remarks.append(f"  not sent: {_named(self.left_out)}")
            remarks.append(f"  nothing was sent after line {self._furthest:,}: --skip {self._furthest} goes on there")
        return remarks


def _named(numbers: Sequence[int]) -> str:
    """`line 3`, or `lines 3, 5-9`, the first of many."""
    starts = [0, *(at + 1 for at, (one, other) in enumerate(pairwise(numbers)) if other != one + 1)]
    runs = [numbers[start:end] for start, end in zip(starts, [*starts[1:], len(numbers)], strict=True)]
    shown = ", ".join(str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs[:_NAMED])
    unnamed = sum(map(len, runs[_NAMED:]))
    more = f" and {unnamed:,} more (-o json names them all)" if unnamed else ""
    return f"line{'s' * (len(numbers) != 1)} {shown}{more}"
