"""The counts of one ballot in memory, sorted as a tally returns them."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable


class SortedCounts:
    """The choices that have casts, each with `since`: the cast since which it has had some without a gap."""

    __slots__ = ("_order", "_pairs", "_ranks")

    def __init__(self, rows: Iterable[tuple[str, int, int]] = ()) -> None:
        """`rows` are each a choice, its count and `since`, in a tally's order."""
        self._ranks = {choice: (-count, since) for choice, count, since in rows}
        self._order = list(self._ranks.values())
        self._pairs = [(choice, -fewer) for choice, (fewer, _) in self._ranks.items()]

    def __len__(self) -> int:
        return len(self._pairs)

    def count_and_since(self, choice: str, number: int) -> tuple[int, int]:
        """Return the count of a choice and its `since`: 0 and `number` if it has no casts."""
        fewer, since = self._ranks.get(choice, (0, number))
        return -fewer, since

    def set_count(self, choice: str, count: int, since: int) -> None:
        """Replace the count of a choice; 0 removes it."""
        before = self._ranks.pop(choice, None)
        if before is not None:
            at = bisect_left(self._order, before)
            del self._order[at], self._pairs[at]
        if count:
            self._ranks[choice] = rank = (-count, since)
            at = bisect_left(self._order, rank)
            self._order.insert(at, rank)
            self._pairs.insert(at, (choice, count))

    def largest(self, most: int | None = None) -> tuple[tuple[str, int], ...]:
        """Return the `most` largest counts with their choices, or all."""
        return tuple(self._pairs[:most])
