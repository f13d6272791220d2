"""The counts of one ballot, sorted as a tally returns them."""

from __future__ import annotations

from bisect import bisect_left


class Histogram:
    """Counts by choice. Remembers which of them are not in the database yet."""

    __slots__ = ("_changed", "_order", "_pairs", "_ranks")

    def __init__(self, rows: list[tuple[str, int, int]]) -> None:
        """`rows` are columns `choice, count, since` of the table `tallies`, in a tally's order."""
        self._ranks = {choice: (-count, since) for choice, count, since in rows}
        self._order = list(self._ranks.values())
        self._pairs = [(choice, count) for choice, count, _ in rows]
        self._changed: set[str] = set()

    def __len__(self) -> int:
        return len(self._pairs)

    def pairs(self, top: int | None = None) -> tuple[tuple[str, int], ...]:
        return tuple(self._pairs if top is None else self._pairs[:top])

    def take_changes(self) -> tuple[list[tuple[str, int, int]], list[str]]:
        """Return the rows that changed since the last call, and the choices that no longer have casts."""
        changed, self._changed = self._changed, set()
        rows = [(choice, -rank[0], rank[1]) for choice in changed if (rank := self._ranks.get(choice))]
        return rows, [choice for choice in changed if choice not in self._ranks]

    def add(self, choice: str, by: int, number: int) -> None:
        """Add `by`, which may be negative, to the count of a choice; `number` is that of the cast."""
        self._changed.add(choice)
        rank = self._ranks.pop(choice, None)
        if rank is None:
            rank = (-by, number)
        else:
            at = bisect_left(self._order, rank)
            del self._order[at], self._pairs[at]
            rank = (rank[0] - by, rank[1])
        if rank[0]:
            at = bisect_left(self._order, rank)
            self._order.insert(at, rank)
            self._pairs.insert(at, (choice, -rank[0]))
            self._ranks[choice] = rank
