"""Whether the result of a simulation is as planned, differs, or is not decided."""

from __future__ import annotations

from array import array

import pytest

from extcli.simulate.outcome import NO_RESPONSE, NOT_SENT, Verdict, compare_choices, compare_items, possible_counts
from extcli.simulate.plan import Plan
from extcli.simulate.subjects import wrong_statistics


def plan_of(*requests: tuple[int, int], expected: tuple[int, ...], late: int = 0) -> Plan:
    """Return a plan of (viewer, choice)."""
    viewers = array("l", (viewer for viewer, _ in requests))
    choices = array("H", (choice for _, choice in requests))
    at = array("d", (float(index) for index in range(len(requests))))
    return Plan(7, 1 + max(viewers), viewers, at, ["a", "b"], choices, expected, late)


TWO = plan_of((0, 0), (1, 1), (0, 1), expected=(0, 2))
"""Both viewers choose b in the end; the first chose a before."""


@pytest.mark.parametrize(
    ("status", "found", "verdict"),
    [
        ((200, 200, 200), {"b": 2}, Verdict.AS_PLANNED),
        ((200, 200, 200), {"a": 1, "b": 1}, Verdict.DIFFERS),
        ((200, 200, 200), {"b": 2, "c": 1}, Verdict.DIFFERS),
        ((200, 200, 400), {"a": 1, "b": 1}, Verdict.DIFFERS),
        ((200, 200, NOT_SENT), {"a": 1, "b": 1}, Verdict.DIFFERS),
        ((200, 200, NO_RESPONSE), {"a": 1, "b": 1}, Verdict.NOT_DECIDED),
        ((200, 200, 503), {"a": 1, "b": 1}, Verdict.NOT_DECIDED),
        ((200, 200, NO_RESPONSE), {"b": 2}, Verdict.AS_PLANNED),
        ((200, 200, NO_RESPONSE), {"b": 1}, Verdict.DIFFERS),
        ((200, NO_RESPONSE, 200), {"b": 1}, Verdict.NOT_DECIDED),
        ((NO_RESPONSE, 200, 200), {"a": 1, "b": 1}, Verdict.NOT_DECIDED),
        ((400, NO_RESPONSE, 400), {"b": 1}, Verdict.DIFFERS),
    ],
)
def test_only_requests_without_a_response_leave_a_difference_open(
    status: tuple[int, ...], found: dict[str, int], verdict: Verdict
):
    assert verdict == compare_choices(TWO, status, {}, found, []).verdict


def test_acknowledged_differences_and_losses_are_distinguished():
    assert compare_choices(TWO, (200, 200, 400), {}, {"a": 1, "b": 1}, []).agrees_with_responses
    assert not compare_choices(TWO, (200, 200, 200), {}, {"a": 1, "b": 1}, []).agrees_with_responses


def test_a_fault_makes_equal_counts_differ():
    assert Verdict.DIFFERS == compare_choices(TWO, (200, 200, 200), {}, {"b": 2}, ["mean is 3"]).verdict


def test_only_the_difference_from_existing_votes_counts():
    for votes_for_a, verdict in ((9, Verdict.AS_PLANNED), (8, Verdict.DIFFERS)):
        found = {"a": votes_for_a, "b": 2, "z": 1}
        assert verdict == compare_choices(TWO, (200, 200, 200), {"a": 9, "z": 1}, found, []).verdict


def test_late_requests_do_not_count():
    plan = plan_of((0, 0), (1, 1), expected=(1, 0), late=1)

    assert ([(1, 1), (0, 0)], (1, 1), 0) == possible_counts(plan, (200, 400))


@pytest.mark.parametrize(
    ("status", "found", "doubled", "verdict"),
    [
        ((200, 200), 2, 0, Verdict.AS_PLANNED),
        ((200, 200), 1, 0, Verdict.DIFFERS),
        ((200, 200), 2, 1, Verdict.DIFFERS),
        ((200, NO_RESPONSE), 1, 0, Verdict.NOT_DECIDED),
        ((200, NO_RESPONSE), 2, 0, Verdict.AS_PLANNED),
        ((200, NO_RESPONSE), 0, 0, Verdict.DIFFERS),
        ((200, 429), 1, 0, Verdict.DIFFERS),
    ],
)
def test_each_entry_must_be_there_once(status: tuple[int, ...], found: int, doubled: int, verdict: Verdict):
    assert verdict == compare_items("entries", status, found, {"doubled": doubled}).verdict


def stats(*specific: int, **wrong: float) -> dict[str, object]:
    return {"specific": list(specific), "count": 4, "sum": 4, "mean": 1.0, "stddev": 1.0, **wrong}


def test_statistics_must_follow_from_the_votes():
    assert [] == wrong_statistics(stats(2, 0, 2))
    assert ["mean is 1.1, but the votes give 1"] == wrong_statistics(stats(2, 0, 2, mean=1.1))
    assert ["stddev is 1.1547, but the votes give 1"] == wrong_statistics(stats(2, 0, 2, stddev=1.1547005))
    assert [] == wrong_statistics(stats(2, 0, 1, mean=9.0)), "a vote is not counted one by one"
