"""The catalog of `extcli conform`, and comparisons of its probes."""

from __future__ import annotations

import pytest

from extcli.conform.report import as_recorded, compare
from extcli.conform.run import Exchange, Result, Status, all_rules

RULE = all_rules()[0]


def result(answer: object, *, status: int = 200, request: str = "GET vote", **names: str) -> Result:
    exchange = Exchange("viewer", request, None, status, answer, {}, "")
    return Result(RULE, Status.PASS, exchanges=[exchange], names=names)


def recording_of(found: Result) -> dict[str, object]:
    return {RULE.name: as_recorded(found)}


@pytest.mark.parametrize(
    ("value", "name"),
    [
        ("conform-12ab3", "<poll-1>"),
        ("global-conform-12ab3", "global-<poll-1>"),
        ("Uconform-9f0", "U<id>"),
        ("eyJhbGci.eyJyb2xl.c2ln", "<token>"),
        (1_795_388_791_591, "<time>"),
        ("since 1795388791591", "since <time>"),
        (1_795_388_791, "<time>"),
        (65_535, 65_535),
        (4.5, 4.5),
        (True, True),
        ("A13042755653088112051", "<opaque>"),
        ("a\ud800", "a\\ud800"),
    ],
)
def test_values_that_vary_have_names_in_a_recording(value, name):
    found = as_recorded(result({"x": [value]}, **{"conform-12ab3": "<poll-1>"}))

    assert {"x": [name]} == found["answers"][0]["answer"]


@pytest.mark.parametrize(
    ("old", "new", "difference"),
    [
        (result({"a": 1}), result({"a": 1}), "same"),
        (result({"a": 1}), result({"a": 2}), "GET vote as viewer: answer.a was 1, is 2"),
        (result({"a": 1}), result({}), "GET vote as viewer: answer.a is gone"),
        (result({}), result({"a": 1}), "GET vote as viewer: answer.a is new"),
        (result([1]), result([1, 2]), "GET vote as viewer: answer was [1], is [1, 2]"),
        (result([{"a": 1}]), result([{"a": 2}]), "GET vote as viewer: answer[0].a was 1, is 2"),
        (result({}), result({}, status=201), "GET vote as viewer: status was 200, is 201"),
        (result({"info": "a"}), result({"info": "b"}), "same"),
        (result({"info": "a"}), result({"info": 1}), 'GET vote as viewer: answer.info was "a", is 1'),
        (result({}), result({}, request="GET rank"), "the recording has GET vote where this run made GET rank"),
    ],
)
def test_the_first_difference_from_a_recording_is_named(old, new, difference):
    assert difference == compare(new, recording_of(old))
