"""The statistics of a poll, computed from its histogram (Stats object; ruling P1)."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from emulator.features.votes.results import Stats, stats_of
from support.examples import examples

HISTOGRAMS = st.dictionaries(st.integers(-99, 99), st.integers(1, 10**12), max_size=199)


def of(histogram: dict[int, int]) -> Stats:
    return stats_of((str(value), votes) for value, votes in histogram.items())


@settings(max_examples=examples(80), deadline=None)
@given(HISTOGRAMS)
def test_statistics_are_exact_for_any_number_of_votes(histogram):
    stats = of(histogram)

    count, total = sum(histogram.values()), sum(value * votes for value, votes in histogram.items())
    mean = Fraction(total, count or 1)
    variance = sum((value - mean) ** 2 * votes for value, votes in histogram.items()) / (count or 1)
    assert (count, total, float(mean)) == (stats.count, stats.sum, stats.mean)
    assert stats.stddev == pytest.approx(math.sqrt(variance), rel=1e-14, abs=0)
    assert [histogram.get(value, 0) for value in range(64)] == stats.specific
