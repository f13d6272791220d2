"""Finds duplicates among ten million entries in eight bytes each.

Only the hash of each entry is kept. Equal hashes make an entry a candidate; the entries are then read again to compare
the text.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from extcli.codes.formats import Batch

_SHIFT = 57
"""The highest seven bits of a hash choose its bucket, so that `finish` looks at one bucket at a time."""
_BUCKETS = 1 << (64 - _SHIFT)

Location = tuple[int, int]
"""The index of a source, and the number of an entry in it."""


class Count(NamedTuple):
    """How many entries of a source are duplicates."""

    within: int
    """Of an entry in the same source."""
    earlier: int
    """Of an entry in an earlier source; each distinct entry counts once."""


class Duplicate(NamedTuple):
    """An entry that occurred before."""

    location: Location
    first: Location


class Duplicates:
    """Takes the entries of one source after another, then counts the duplicates of each."""

    def __init__(self) -> None:
        # Hashes are signed: a negative index counts from the end of the list, so every hash has a bucket.
        self._buckets = [array("q") for _ in range(_BUCKETS)]
        self._append = [bucket.append for bucket in self._buckets]
        self._ends: list[list[int]] = []

    def add(self, items: Iterable[str]) -> None:
        """Add entries of the current source."""
        append = self._append
        for each in map(hash, items):
            append[each >> _SHIFT](each)

    def end_source(self) -> None:
        """Start the next source."""
        self._ends.append([len(bucket) for bucket in self._buckets])

    def finish(self) -> tuple[list[Count], array[int]]:
        """Return the counts by source, and the sorted hashes that occur more than once. Frees the memory."""
        within, earlier = [0] * len(self._ends), [0] * len(self._ends)
        candidates = array("q")
        for number in range(-_BUCKETS // 2, _BUCKETS // 2):
            bucket, self._buckets[number] = self._buckets[number], array("q")
            seen: set[int] = set()
            start = 0
            for source, ends in enumerate(self._ends):
                part = bucket[start : ends[number]]
                distinct = set(part)
                within[source] += len(part) - len(distinct)
                earlier[source] += len(distinct & seen)
                seen |= distinct
                start = ends[number]
            if len(seen) < len(bucket):
                candidates.extend(sorted(each for each, count in Counter(bucket).items() if count > 1))
        self._append.clear()
        return [Count(*counts) for counts in zip(within, earlier, strict=True)], candidates


def compare(
    sources: Sequence[Iterable[Batch]], candidates: array[int], limit: int
) -> tuple[list[Duplicate], list[Location]]:
    """Read the entries again and return the first duplicates, at most `limit`, and where only the hashes are equal."""
    found = dict(_repeated_hashes(sources, candidates, limit))
    wanted = set(found.values())
    first: dict[str, Location] = {}
    for source, batches in enumerate(sources):
        for batch in batches:
            if len(first) == len(wanted):
                break
            for item in wanted.difference(first).intersection(each for each in batch.items if isinstance(each, str)):
                first[item] = (source, batch.numbers[batch.items.index(item)])
    duplicates = [Duplicate(location, first[item]) for location, item in found.items() if first[item] != location]
    return duplicates, [location for location, item in found.items() if first[item] == location]


def _repeated_hashes(
    sources: Sequence[Iterable[Batch]], candidates: array[int], limit: int
) -> Iterator[tuple[Location, str]]:
    """Yield the first entries whose hash occurred before."""
    seen = bytearray(len(candidates))
    left = limit
    for source, batches in enumerate(sources):
        for batch in batches:
            for number, item in zip(batch.numbers, batch.items, strict=True):
                each = hash(item)
                at = bisect_left(candidates, each)
                if at == len(candidates) or candidates[at] != each:
                    continue
                if seen[at]:
                    yield (source, number), item
                    left -= 1
                    if not left:
                        return
                seen[at] = 1
