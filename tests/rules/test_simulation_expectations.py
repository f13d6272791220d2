"""Expectations on the figures of a simulation, and its percentiles."""

from __future__ import annotations

import pytest

from extcli.errors import UsageError
from extcli.simulate.expectations import parse
from extcli.simulate.outcome import Tally, latencies, percentile, points_over_time

TALLY = Tally(
    planned=1000, sent=1003, answered=999, refused=3, late=0, failed=1, unsent=0, repeated=3, reopened=0,
    rate=499.5, lag=0.001, latencies={"p50": 0.001, "p90": 0.005, "p99": 0.05, "p999": 0.3, "max": 0.301},
)  # fmt: skip


@pytest.mark.parametrize(
    ("text", "met"),
    [
        ("p99<50ms", False),
        ("p99<=50ms", True),
        ("p99 <= 0.05s", True),
        ("p99.9<301ms", True),
        ("p999<300ms", False),
        ("p50<1500us", True),
        ("max>=300ms", True),
        ("rate>490/s", True),
        ("rate>490", True),
        ("rate<29000/min", False),
        ("refused==0", False),
        ("refused==3", True),
        ("sent==1003", True),
        ("answered>998", True),
        ("failed<1", False),
    ],
)
def test_an_expectation_compares_a_figure_with_a_limit(text: str, met: bool):
    assert met == parse(text).is_met(TALLY)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "p99",
        "p99<",
        "p99<50",
        "p99<50/s",
        "p98<50ms",
        "refused=0",
        "refused==0ms",
        "rate>5ms",
        "rate>x",
        "p99!=1ms",
    ],
)
def test_a_wrong_expectation_is_an_error_that_names_what_is_allowed(text: str):
    with pytest.raises(UsageError, match="--expect") as error:
        parse(text)
    assert "p50 p90 p99 p999 max rate sent answered refused failed" in error.value.fix


def test_a_latency_without_a_response_meets_no_expectation():
    assert not parse("p99<1s").is_met(Tally(1, 1, 0, 0, 0, 1, 0, 0, 0, 0.0, 0.0, {}))


@pytest.mark.parametrize(
    ("part", "value"), [(0.5, 50), (0.9, 90), (0.99, 99), (0.999, 100), (1.0, 100), (0.001, 1), (0, 1)]
)
def test_a_percentile_is_the_smallest_value_that_the_share_does_not_exceed(part: float, value: int):
    assert value == percentile(range(1, 101), part)


def test_latencies_need_no_order():
    assert {"p50": 2, "p90": 3, "p99": 3, "p999": 3, "max": 3} == latencies([3, 1, 2])
    assert {} == latencies([])


def test_a_series_counts_by_planned_instant_and_by_answer():
    points = points_over_time([0.0, 0.5, 1.0, 1.5], [0.1, 2.0, 1.1, 9.0], [True, True, True, False], [9.0])

    assert 4 == sum(point["planned"] for point in points) * 0.2
    assert 3 == round(sum(point["answered"] for point in points) * 0.2)
    assert 1 == round(sum(point["refused"] for point in points) * 0.2)
    (slow,) = [point for point in points if point["max"] == 1500]
    assert pytest.approx(0.4) == slow["at"]
