"""When two JSON values are equal."""

from __future__ import annotations

from typing import Any


def are_equal(one: Any, other: Any) -> bool:
    """Whether two decoded values are the same JSON: 1 equals 1.0, but not `true`. A tuple counts as an array."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(map(are_equal, one.values(), map(other.__getitem__, one)))
    if isinstance(one, (list, tuple)) and isinstance(other, (list, tuple)):
        return len(one) == len(other) and all(map(are_equal, one, other))
    return isinstance(one, bool) == isinstance(other, bool) and bool(one == other)
