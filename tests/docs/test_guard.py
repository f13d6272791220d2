"""The guard of instruction counts judges correctly; the counts themselves are not tests."""

from __future__ import annotations

import json
from typing import Any

import pytest


@pytest.mark.parametrize(
    ("instructions", "failed", "report"),
    [
        (102_990, False, ["vote", "102,990", "100,000", "+2.99%"]),
        (103_010, True, ["vote", "103,010", "100,000", "+3.01%", "make bench-guard ARGS=--update"]),
        (97_010, False, ["-2.99%"]),
        (96_990, False, ["-3.01%", "cheaper than expected", "make bench-guard ARGS=--update"]),
    ],
)
def test_a_call_that_takes_too_many_instructions_fails_the_guard(
    guard: Any, instructions: int, failed: bool, report: list[str]
):
    lines, verdict = guard.judge([guard.Found("vote", instructions, 100_000)])

    assert failed == verdict
    assert [] == [part for part in report if part not in "\n".join(lines)]
    assert (len(lines) == 2) == ("make bench-guard ARGS=--update" in report)


def test_the_guard_says_what_has_been_added_since_the_reference(guard: Any):
    lines, failed = guard.judge([guard.Found("vote", 102_000, 100_000, 80_000)])

    assert (["+2.00%; +27.50% since the reference"], False) == ([line.rpartition(": ")[2] for line in lines], failed)


def test_the_guard_has_a_count_for_each_of_its_cases(guard: Any):
    counts = json.loads(guard.COUNTS.read_text())

    assert {tuple(guard.CASES)} == {tuple(cases) for cases in counts.values()}
