"""How often each choice of one ballot is held, kept in the order in which a tally gives them."""

from __future__ import annotations

from bisect import bisect_left


class Histogram:
    """The counts of one ballot; it remembers which of them the database has not got yet."""

    __slots__ = ("_changed", "_order", "_pairs", "_ranks")

    def __init__(self, rows: list[tuple[str, int, int]]) -> None:
        """`rows` are a choice, its count and the number it has been held since, in a tally's order."""
        self._ranks = {choice: (-count, since) for choice, count, since in rows}
        self._order = list(self._ranks.values())
        self._pairs = [(choice, count) for choice, count, _ in rows]
        self._changed: set[str] = set()

    def __len__(self) -> int:
        return len(self._pairs)

    def pairs(self, top: int | None = None) -> tuple[tuple[str, int], ...]:
        return tuple(self._pairs if top is None else self._pairs[:top])

    def taken_changes(self) -> tuple[list[tuple[str, int, int]], list[str]]:
        """The rows that changed since this was last asked, and the choices that nobody holds any more."""
        changed, self._changed = self._changed, set()
        held = [(choice, -rank[0], rank[1]) for choice in changed if (rank := self._ranks.get(choice))]
        return held, [choice for choice in changed if choice not in self._ranks]

    def shift(self, choice: str, by: int, number: int) -> None:
        """Count `by` more or fewer casts; `number` is that of the cast that does it."""
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
