"""How often each choice of one ballot is held, kept in the order in which a tally gives them."""

from __future__ import annotations

from bisect import bisect_left


class Counts:
    """`changed` collects the choices whose row in the database is out of date."""

    __slots__ = ("_order", "_pairs", "_ranks", "changed")

    def __init__(self, rows: list[tuple[str, int, int]]) -> None:
        """`rows` are a choice, its count and the number it has been held since, in a tally's order."""
        self._ranks = {choice: (-count, since) for choice, count, since in rows}
        self._order = list(self._ranks.values())
        self._pairs = [(choice, count) for choice, count, _ in rows]
        self.changed: set[str] = set()

    def __len__(self) -> int:
        return len(self._pairs)

    def pairs(self, top: int | None = None) -> tuple[tuple[str, int], ...]:
        return tuple(self._pairs if top is None else self._pairs[:top])

    def row(self, choice: str) -> tuple[int, int]:
        """The count of a choice, 0 when nobody holds it, and since when it has been held."""
        back, since = self._ranks.get(choice, (0, 0))
        return -back, since

    def shift(self, choice: str, by: int, number: int) -> None:
        """Count `by` more or fewer casts; `number` is that of the cast that does it."""
        self.changed.add(choice)
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
