"""The strip above the requests: bars of ten seconds."""

from __future__ import annotations

import pytest

from emulator.core.journal import DELIVERY, REQUEST, Entry
from emulator.dashboard.screens.requests import BAR, BARS, strip_of

NOW = 1_700_000_000_000 + 3_000  # three seconds into a bar


def entry(at: int, number: int = 1, kind: str = REQUEST, reason: str = "") -> Entry:
    return Entry(kind, at, 0, reason=reason, number=number)


def test_without_entries_there_is_nothing_to_see():
    assert 0 == strip_of([], NOW).highest


@pytest.mark.parametrize(
    ("before", "bar"), [(0, 29), (3_000, 29), (3_001, 28), (13_001, 27), ((BARS - 1) * BAR + 3_000, 0)]
)
def test_an_entry_is_in_the_bar_of_its_time(before: int, bar: int):
    counted = strip_of([entry(NOW - before)], NOW)

    assert [bar] == [number for number, each in enumerate(counted.bars) if each.requests]


@pytest.mark.parametrize("at", [NOW + 1, NOW - (BARS - 1) * BAR - 3_001])
def test_an_entry_of_another_time_is_in_no_bar(at: int):
    assert 0 == strip_of([entry(at)], NOW).highest


def test_a_bar_counts_requests_refusals_and_deliveries():
    entries = [entry(NOW, 4, DELIVERY), entry(NOW, 3, reason="Forbidden"), entry(NOW, 2), entry(NOW, 1)]

    strip = strip_of(entries, NOW)

    bar = strip.bars[-1]
    assert (3, 1, 1) == (bar.requests, bar.refused, bar.deliveries)
    assert (1, 4) == (bar.first, bar.last)
    assert (4, 3, 1, 1) == strip[1:]


def test_the_highest_bar_fills_the_height_from_below():
    strip = strip_of([entry(NOW, 2, DELIVERY), entry(NOW, 1, reason="Forbidden"), entry(NOW - BAR, 1)], NOW)

    assert [("refused", 20, 20), ("deliveries", 40, 20)] == strip.bars[-1].parts(strip.highest)
    assert [("requests", 20, 20)] == strip.bars[-2].parts(strip.highest)
