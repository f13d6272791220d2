"""The statistics of a poll, computed from its histogram (Stats object; ruling P1)."""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from emulator.features.votes.results import Stats, stats_of
from support.examples import examples

VALUES = st.integers(-99, 99)
HISTOGRAMS = st.dictionaries(VALUES, st.integers(1, 10**12), max_size=199)


def of(histogram: dict[int, int]) -> Stats:
    return stats_of((str(value), votes) for value, votes in histogram.items())


@pytest.mark.parametrize(
    ("histogram", "count", "total", "mean", "stddev"),
    [
        ({}, 0, 0, 0.0, 0.0),
        ({5: 1}, 1, 5, 5.0, 0.0),
        ({-99: 3}, 3, -297, -99.0, 0.0),
        ({1: 1, 2: 1}, 2, 3, 1.5, 0.5),
        ({-1: 1, 1: 1}, 2, 0, 0.0, 1.0),
        ({2: 1, 4: 3, 5: 2, 7: 1, 9: 1}, 8, 40, 5.0, 2.0),
        ({-99: 1, 99: 1}, 2, 0, 0.0, 99.0),
        ({0: 1, 1: 2}, 3, 2, 2 / 3, math.sqrt(2) / 3),
        ({7: 10**15}, 10**15, 7 * 10**15, 7.0, 0.0),
        ({98: 10**15, 99: 10**15}, 2 * 10**15, 197 * 10**15, 98.5, 0.5),
    ],
)
def test_mean_sum_count_and_population_deviation(histogram, count, total, mean, stddev):
    stats = of(histogram)

    assert (count, total, mean, stddev) == (stats.count, stats.sum, stats.mean, stats.stddev)


def test_specific_counts_0_to_63_and_the_other_fields_count_all_values():
    stats = of({-99: 1, -1: 1, 0: 2, 63: 3, 64: 1, 99: 1})

    assert [2] + [0] * 62 + [3] == stats.specific
    assert (9, 2 * 0 + 63 * 3 + 64 + 99 - 99 - 1) == (stats.count, stats.sum)


@settings(max_examples=examples(100), deadline=None)
@given(st.lists(VALUES, max_size=300))
def test_statistics_of_the_histogram_equal_those_of_the_votes(votes):
    stats = of(Counter(votes))

    mean = Fraction(sum(votes), len(votes)) if votes else Fraction(0)
    variance = sum((vote - mean) ** 2 for vote in votes) / len(votes) if votes else Fraction(0)
    assert (len(votes), sum(votes)) == (stats.count, stats.sum)
    assert float(mean) == stats.mean
    assert stats.stddev == pytest.approx(math.sqrt(variance), rel=1e-14, abs=0)
    assert [votes.count(value) for value in range(64)] == stats.specific


@pytest.mark.slow
@settings(max_examples=examples(100), deadline=None)
@given(HISTOGRAMS)
def test_statistics_are_exact_for_any_number_of_votes(histogram):
    stats = of(histogram)

    count = sum(histogram.values())
    mean = Fraction(sum(value * votes for value, votes in histogram.items()), count or 1)
    variance = sum((value - mean) ** 2 * votes for value, votes in histogram.items()) / (count or 1)
    assert float(mean) == stats.mean
    assert stats.stddev == pytest.approx(math.sqrt(variance), rel=1e-14, abs=0)


@settings(max_examples=examples(100), deadline=None)
@given(HISTOGRAMS)
def test_the_order_of_the_histogram_does_not_matter(histogram):
    assert of(histogram) == of(dict(reversed(histogram.items())))


@settings(max_examples=examples(100), deadline=None)
@given(st.lists(VALUES, min_size=1, max_size=50))
def test_a_replaced_vote_does_not_count(votes):
    held = Counter(votes)
    held[votes[0]] -= 1
    held[7] += 1

    assert of(Counter([7, *votes[1:]])) == of(+held)
