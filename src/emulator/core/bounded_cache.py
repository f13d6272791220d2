"""A mapping with a limit, for caches that clients can fill."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class BoundedCache(Generic[K, V]):
    """At most `size` entries: one more evicts the oldest. Reading or replacing an entry does not make it newer.

    A large cache evicts the oldest of every 256 at once. Finding the oldest key of a `dict` skips every entry deleted
    before it, some 37 µs in a full cache of 65,536, and so they share that. An `OrderedDict` finds it at once, but each
    of its entries takes 50 bytes more, and twice as long to add.
    """

    __slots__ = ("_entries", "get", "size")

    get: Callable[[K], V | None]
    """The value of a key, or `None`. The method of the mapping itself, which saves a call on hot paths."""

    def __init__(self, size: int) -> None:
        self.size = size
        self._entries: dict[K, V] = {}
        self.get = self._entries.get

    def __len__(self) -> int:
        return len(self._entries)

    def __setitem__(self, key: K, value: V) -> None:
        """Add or replace an entry. Only adding to a full cache evicts others."""
        entries = self._entries
        entries[key] = value
        if len(entries) > self.size:
            for oldest in list(islice(entries, 1 + self.size // 256)):
                del entries[oldest]

    def renew(self, key: K, value: V) -> None:
        """Add or replace an entry as the newest, which others do not evict soon."""
        self._entries.pop(key, None)
        self[key] = value

    def pop(self, key: K) -> V | None:
        """Remove an entry; return its value, or `None` if there was none."""
        return self._entries.pop(key, None)

    def items(self) -> Iterator[tuple[K, V]]:
        return iter(self._entries.items())

    def clear(self) -> None:
        self._entries.clear()
