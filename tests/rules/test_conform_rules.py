"""The catalog of `extcli conform`, comparisons of its probes, and their pace."""

from __future__ import annotations

import re

import pytest

from extcli import clock
from extcli.conform.report import as_recorded, compare
from extcli.conform.run import Exchange, Result, Status, all_rules
from extcli.conform.target import BURST, PER_SECOND, Pace
from extcli.rulings import rulings

SECTIONS = re.compile("spec: [A-Z][a-z]+")
RULE = all_rules()[0]


def result(answer: object, *, status: int = 200, request: str = "GET vote", **names: str) -> Result:
    exchange = Exchange("viewer", request, None, status, answer, {}, "")
    return Result(RULE, Status.PASS, exchanges=[exchange], names=names)


def recording_of(found: Result) -> dict[str, object]:
    return {RULE.name: as_recorded(found)}


# The catalog


def test_names_of_rules_are_unique():
    names = [each.name for each in all_rules()]

    assert sorted(set(names)) == sorted(names)


def test_each_rule_has_a_known_source_and_one_sentence():
    known = {each["id"] for each in rulings()}

    assert {each.source for each in all_rules() if not SECTIONS.fullmatch(each.source)} <= known
    assert [] == [each.name for each in all_rules() if not re.fullmatch(r"[^\n]*\.", each.sentence)]


def test_rules_are_sorted_by_source():
    places = {each.source: number for number, each in enumerate(all_rules())}

    assert places["spec: Voting"] < places["W1"] < places["A1"] < places["P1"] < places["X9"] < places["C1"]


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


@pytest.mark.parametrize("member", ["pin", "token"])
def test_a_pin_has_a_name_in_a_recording(member):
    assert {member: "<pin>"} == as_recorded(result({member: "ABC234"}))["answers"][0]["answer"]


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


# The pace


@pytest.fixture
def slept(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The waits in seconds, while the clock stands still."""
    waits: list[float] = []
    monkeypatch.setattr(clock, "elapsed", lambda: 100.0)
    monkeypatch.setattr(clock, "sleep", waits.append)
    return waits


def test_a_caller_waits_after_a_burst(slept):
    pace = Pace(unlimited=False, shared=False)

    for _ in range(int(BURST)):
        pace.take("one")
    before = list(slept)
    pace.take("two")
    pace.take("one")

    assert ([], [1 / PER_SECOND]) == (before, slept)


def test_all_callers_share_the_pace_of_another_machine(slept):
    pace = Pace(unlimited=False, shared=True)

    for number in range(int(BURST) + 1):
        pace.take(str(number))

    assert [1 / PER_SECOND] == slept


def test_a_sandbox_has_no_pace(slept):
    pace = Pace(unlimited=True, shared=True)

    for _ in range(1_000):
        pace.take("one")

    assert [] == slept
