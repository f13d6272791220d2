"""JSON as people read it: as text, and the differences between two values by their place."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import takewhile, zip_longest
from typing import Any, NamedTuple

from emulator.core.wire import json_codec

_REORDERING = re.compile("[\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
"""Characters that change the order or the lines of the text around them."""


def compact_json(value: Any) -> str:
    """Return JSON on one line."""
    return escape_reordering(json_codec.encode(value).decode())


def escape_reordering(text: str) -> str:
    """Return JSON in which characters that reorder text are escaped, so that it reads as it is."""
    return _REORDERING.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


_ABSENT = object()


class Difference(NamedTuple):
    """One place where two values differ."""

    pointer: str
    """The place as a JSON pointer; empty for the whole."""
    before: str | None
    """The value there as JSON; `None` if there is none."""
    after: str | None


def differences(before: Any, after: Any) -> Iterator[Difference]:
    """Yield the places where two JSON values differ, in document order. The order of members does not matter.

    Arrays are compared entry by entry, without their common start and end. 1 and 1.0 differ.
    """
    places: list[tuple[str, Any, Any]] = [("", before, after)]
    while places:
        pointer, one, other = places.pop()
        if isinstance(one, dict) and isinstance(other, dict):
            names = dict.fromkeys([*one, *other])
            inner = []
            for name in names:
                escaped_name = name.replace("~", "~0").replace("/", "~1")
                inner.append((escaped_name, one.get(name, _ABSENT), other.get(name, _ABSENT)))
        elif isinstance(one, list) and isinstance(other, list):
            inner = _paired_entries(one, other)
        else:
            if type(one) is not type(other) or one != other:
                yield Difference(pointer, _json_or_none(one), _json_or_none(other))
            continue
        places += [(f"{pointer}/{name}", *pair) for name, *pair in reversed(inner)]


def _paired_entries(one: list[Any], other: list[Any]) -> list[tuple[str, Any, Any]]:
    """Return the entries of two arrays that are compared, each with its index."""
    start = _count_equal_entries(one, other)
    one, other = one[start:], other[start:]
    end = _count_equal_entries(reversed(one), reversed(other))
    pairs = zip_longest(one[: len(one) - end], other[: len(other) - end], fillvalue=_ABSENT)
    return [(str(index), *pair) for index, pair in enumerate(pairs, start)]


def _count_equal_entries(one: Iterable[Any], other: Iterable[Any]) -> int:
    """Return how many entries at the beginning of two arrays are equal."""
    pairs = zip(one, other, strict=False)
    return sum(1 for _ in takewhile(lambda pair: json_codec.encode(pair[0]) == json_codec.encode(pair[1]), pairs))


def _json_or_none(value: Any) -> str | None:
    return None if value is _ABSENT else compact_json(value)
