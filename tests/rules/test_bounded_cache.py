"""A bounded cache evicts the oldest entry, and every operation takes constant time."""

from __future__ import annotations

import pytest

from emulator.core.bounded_cache import BoundedCache

SIZE = 3


def filled(keys: str) -> BoundedCache[str, str]:
    """Return a cache to which these keys were added in order, each with itself as value."""
    cache = BoundedCache[str, str](SIZE)
    for key in keys:
        cache[key] = key
    return cache


@pytest.mark.parametrize(
    ("added", "left"),
    [
        ("", ""),
        ("a", "a"),
        ("abc", "abc"),
        ("abcd", "bcd"),
        ("abcdefgh", "fgh"),
        ("abca", "abc"),
        ("abcad", "bcd"),
        ("abcda", "cda"),
    ],
)
def test_an_entry_over_the_size_evicts_the_oldest(added: str, left: str):
    cache = filled(added)

    assert len(left) == len(cache)
    assert {*left} == {key for key in added if cache.get(key) == key}


def test_replacing_an_entry_of_a_full_cache_evicts_none():
    cache = filled("abc")

    cache["a"] = "new"

    assert ["new", "b", "c"] == [cache.get(key) for key in "abc"]
