"""A mapping with a limit, for caches that clients can fill."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class BoundedCache(Generic[K, V]):
    """At most `size` entries: one more evicts the oldest. Reading or replacing an entry does not make it newer.

    With `weigh`, which returns the weight of a key, the weights of all entries add up to at most `size` instead. A
    weight never changes. So a cache can be bounded by the bytes that it takes.

    Each operation takes constant time. A `dict` does not offer that: finding its oldest key with `next(iter(…))` skips
    every entry deleted before it, some 37 µs in a full cache of 65,536.
    """

    __slots__ = ("_entries", "_weigh", "_weight", "get", "size")

    get: Callable[[K], V | None]
    """The value of a key, or `None`. The method of the mapping itself, which saves a call on hot paths."""

    def __init__(self, size: int, weigh: Callable[[K], int] | None = None) -> None:
        self.size = size
        self._weigh = weigh
        self._weight = 0
        self._entries: OrderedDict[K, V] = OrderedDict()
        self.get = self._entries.get

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[K]:
        return iter(self._entries)

    def __setitem__(self, key: K, value: V) -> None:
        """Add or replace an entry. Only adding to a full cache evicts others."""
        entries = self._entries
        if self._weigh is None:
            entries[key] = value
            if len(entries) > self.size:
                entries.popitem(last=False)
            return
        if key not in entries:
            self._weight += self._weigh(key)
        entries[key] = value
        while self._weight > self.size:
            self._weight -= self._weigh(entries.popitem(last=False)[0])

    def pop(self, key: K) -> V | None:
        """Remove an entry; return its value, or `None` if there was none."""
        if self._weigh is not None and key in self._entries:
            self._weight -= self._weigh(key)
        return self._entries.pop(key, None)

    def items(self) -> Iterator[tuple[K, V]]:
        return iter(self._entries.items())

    def retain(self, keys: Iterable[K]) -> None:
        """Remove all entries except those with these keys. Keys without an entry are ignored."""
        kept = [(key, self._entries[key]) for key in keys if key in self._entries]
        self._entries.clear()  # `get` is bound to this mapping
        self._entries.update(kept)
        self._weight = sum(map(self._weigh, self._entries)) if self._weigh is not None else 0

    def clear(self) -> None:
        self._entries.clear()
        self._weight = 0
