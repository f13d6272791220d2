"""Finds entries that come twice among ten million, in a few bytes each.

Each entry leaves eight bytes, its hash. Equal hashes only raise suspicion: whether there is a repeat is decided by
comparing the entries themselves, which are read again for it.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from extcli.codes.formats import Batch

_SHIFT = 57
"""Hashes are kept by their highest seven bits, so that one heap after the other can be looked at."""
_HEAPS = 1 << (64 - _SHIFT)

Place = tuple[int, int]
"""Which of the sources, and the number there."""


class Count(NamedTuple):
    """How many entries of a source came before."""

    inside: int
    """In the same source."""
    earlier: int
    """In a source before it; each different entry counts once."""


class Duplicate(NamedTuple):
    """An entry that came before."""

    place: Place
    first: Place


class Duplicates:
    """Takes the entries of one source after the other, then says how many came twice."""

    def __init__(self) -> None:
        # A hash has a sign, so the heaps of negative ones are counted from the end of the list.
        self._heaps = [array("q") for _ in range(_HEAPS)]
        self._append = [heap.append for heap in self._heaps]
        self._ends: list[list[int]] = []

    def add(self, items: Iterable[str]) -> None:
        """Some entries of the current source."""
        append = self._append
        for each in map(hash, items):
            append[each >> _SHIFT](each)

    def end_source(self) -> None:
        """What comes now is of the next one."""
        self._ends.append([len(heap) for heap in self._heaps])

    def close(self) -> tuple[list[Count], array[int]]:
        """By source how many entries came twice as it seems, and the hashes of these in order. Frees what was kept."""
        inside, earlier = [0] * len(self._ends), [0] * len(self._ends)
        suspects = array("q")
        for number in range(-_HEAPS // 2, _HEAPS // 2):
            heap, self._heaps[number] = self._heaps[number], array("q")
            seen: set[int] = set()
            start = 0
            for source, ends in enumerate(self._ends):
                part = heap[start : ends[number]]
                different = set(part)
                inside[source] += len(part) - len(different)
                earlier[source] += len(different & seen)
                seen |= different
                start = ends[number]
            if len(seen) < len(heap):
                suspects.extend(sorted(each for each, count in Counter(heap).items() if count > 1))
        self._append.clear()
        return [Count(*counts) for counts in zip(inside, earlier, strict=True)], suspects


def confirmed(
    sources: Sequence[Iterable[Batch]], suspects: array[int], most: int
) -> tuple[list[Duplicate], list[Place]]:
    """The first repeats, at most so many; and the places that only looked like one."""
    found = dict(_suspected(sources, suspects, most))
    wanted = set(found.values())
    first: dict[str, Place] = {}
    for source, batches in enumerate(sources):
        for batch in batches:
            if len(first) == len(wanted):
                break
            for item in wanted.difference(first).intersection(each for each in batch.items if isinstance(each, str)):
                first[item] = (source, batch.numbers[batch.items.index(item)])
    repeats = [Duplicate(place, first[item]) for place, item in found.items() if first[item] != place]
    return repeats, [place for place, item in found.items() if first[item] == place]


def _suspected(sources: Sequence[Iterable[Batch]], suspects: array[int], most: int) -> Iterator[tuple[Place, str]]:
    """The first entries whose hash came before."""
    came = bytearray(len(suspects))
    left = most
    for source, batches in enumerate(sources):
        for batch in batches:
            for number, item in zip(batch.numbers, batch.items, strict=True):
                each = hash(item)
                at = bisect_left(suspects, each)
                if at == len(suspects) or suspects[at] != each:
                    continue
                if came[at]:
                    yield (source, number), item
                    left -= 1
                    if not left:
                        return
                came[at] = 1
