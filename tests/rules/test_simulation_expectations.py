"""Expectations on the figures of a simulation, and its percentiles."""

from __future__ import annotations

import pytest

from extcli.simulate.outcome import latencies, points_over_time
from extcli.simulate.result import parse_expectation

FIGURES = {"sent": 1003, "answered": 999, "refused": 3, "failed": 1, "rate": 499.5,
           "p50": 1.0, "p90": 5.0, "p99": 50.0, "p999": 300.0, "max": 301.0}  # fmt: skip


@pytest.mark.parametrize(
    ("text", "met"),
    [
        ("p99<50ms", False),
        ("p99 <= 0.05s", True),
        ("p999<300ms", False),
        ("max>=300ms", True),
        ("rate>490/s", True),
        ("rate<29000/min", False),
        ("refused==0", False),
        ("sent==1003", True),
        ("failed<1", False),
    ],
)
def test_an_expectation_compares_a_figure_with_a_limit(text: str, met: bool):
    assert met == parse_expectation(text)(FIGURES)["met"]


def test_a_latency_without_a_response_meets_no_expectation():
    assert {"text": "p99<1s", "met": False, "found": "no response"} == parse_expectation("p99<1s")({"sent": 1})


def test_a_percentile_is_the_smallest_value_that_the_share_does_not_exceed():
    assert {"p50": 2000, "p90": 3000, "p99": 3000, "p999": 3000, "max": 3000} == latencies([3, 1, 2])
    assert [50, 90, 99, 100, 100] == list(latencies(value / 1000 for value in range(1, 101)).values())
    assert {} == latencies([])


def test_a_series_counts_by_planned_instant_and_by_answer():
    points = points_over_time([0.0, 0.5, 1.0, 1.5], [(0.0, 0.1), (0.5, 2.0), (1.0, 1.1)], [9.0])

    assert 4 == sum(point["planned"] for point in points) * 0.2
    assert 3 == round(sum(point["answered"] for point in points) * 0.2)
    assert 1 == round(sum(point["refused"] for point in points) * 0.2)
    (slow,) = [point for point in points if point["max"] == 1500]
    assert pytest.approx(0.4) == slow["at"]
