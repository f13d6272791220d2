"""What a crowd will send, and the result that follows from it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from fractions import Fraction

import pytest

from extcli.errors import UsageError
from extcli.simulate import plan as planning
from extcli.simulate.plan import Pace, Plan, plan_crowd

Parser = Callable[[str, str], Fraction | float]
PACE = Pace(500)
MIX = planning.parse_mix("0:60,1:30,2:10")


def plan_of(viewers: int = 5000, **options: object) -> Plan:
    return plan_crowd(viewers, MIX, PACE, **{"seed": 7, **options})  # type: ignore[arg-type]


def last_choices(plan: Plan) -> Counter[str]:
    """Play the requests in time, as a service that keeps the last choice of each viewer."""
    latest = {plan.senders[index]: plan.choice_indexes[index] for index in range(plan.late_from)}
    return Counter(plan.choices[choice] for choice in latest.values())


@pytest.mark.parametrize(
    ("weights", "total", "expected"),
    [
        ([60, 30, 10], 5000, [3000, 1500, 500]),
        ([1, 1, 1], 100, [34, 33, 33]),
        ([1, 1, 1], 2, [1, 1, 0]),
        ([2, 3], 4, [2, 2]),
        ([999, 1], 10, [10, 0]),
        ([1], 0, [0]),
    ],
)
def test_shares_become_whole_numbers_by_largest_remainder(weights: list[int], total: int, expected: list[int]):
    assert expected == planning.divide_by_weights([Fraction(each) for each in weights], total)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"change_mind": Fraction(1, 20)},
        {"late": Fraction(1, 50)},
        {"requests": 20_000},
        {"requests": 20_000, "change_mind": Fraction(1, 2), "late": Fraction(1, 10)},
    ],
)
def test_the_last_choices_of_the_viewers_are_the_expected_result(options: dict[str, object]):
    plan = plan_of(**options)

    assert dict(zip(plan.choices, plan.expected, strict=True)) == last_choices(plan)
    assert sum(plan.expected) == len(set(plan.senders[: plan.late_from]))


def test_viewers_who_change_their_mind_first_choose_something_else():
    plan = plan_of(change_mind=Fraction(1, 20))
    chosen: dict[int, list[int]] = {}
    for viewer, choice in zip(plan.senders, plan.choice_indexes, strict=True):
        chosen.setdefault(viewer, []).append(choice)
    changed = [each for each in chosen.values() if len(each) > 1]

    assert 250 == len(changed)
    assert all(len(each) == 2 and each[0] != each[1] for each in changed)


def test_late_viewers_send_nothing_in_time():
    plan = plan_of(late=Fraction(1, 50))

    assert 100 == plan.late == len(plan) - 4900
    assert set(range(4900)) == set(plan.senders[: plan.late_from])
    assert set(range(4900, 5000)) == set(plan.senders[plan.late_from :])


def test_a_steady_rate_plans_equal_gaps():
    plan = plan_of(1000)

    assert pytest.approx(999 / 500) == plan.duration
    assert {0.002} == {round(end - start, 9) for start, end in zip(plan.instants, plan.instants[1:], strict=False)}


def test_a_burst_is_densest_at_its_start_and_ends_in_time():
    at = Pace(burst=3.0).instants(3000)

    assert 0 == at[0]
    assert at[-1] < 3
    assert list(at) == sorted(at)
    assert at[1500] == pytest.approx(3 * (1 - 0.5**0.5))


def test_too_few_votes_or_votes_of_nobody_are_an_error():
    with pytest.raises(UsageError, match="--votes 300 is too few: 5,000 viewers send votes in time") as error:
        plan_of(requests=300, change_mind=Fraction(1, 20))
    assert "5250" in error.value.fix
    with pytest.raises(UsageError, match="--votes 20 is too many: all viewers are late"):
        plan_of(10, requests=20, late=Fraction(1))
    assert 10 == plan_of(10, late=Fraction(1)).late


def test_a_mind_cannot_change_in_a_mix_of_one():
    with pytest.raises(UsageError, match="--change-mind needs a mix of two choices or more"):
        plan_crowd(10, planning.parse_mix("0:1"), PACE, change_mind=Fraction(1, 2))


@pytest.mark.parametrize("text", ["", "0", "0:0", "0:-1", ":5", "0:5,,1:5", "0:5,0:6", "0:x"])
def test_a_wrong_mix_is_an_error(text: str):
    with pytest.raises(UsageError, match="--mix"):
        planning.parse_mix(text)


def test_a_choice_may_contain_colons():
    assert {"12:30": Fraction(2), "x": Fraction(1, 2)} == planning.parse_mix("12:30:2, x:0.5")


@pytest.mark.parametrize(
    ("parse", "text", "value"),
    [
        *((planning.parse_share, text, value) for text, value in (("5%", 0.05), ("0.05", 0.05), ("100%", 1), ("0", 0))),
        *((planning.parse_rate, text, value) for text, value in (("500", 500), ("600/min", 10), ("0.5/s", 0.5))),
        (lambda text, _: planning.parse_churn(text), "10%/min", 0.1 / 60),
    ],
)
def test_shares_and_rates_are_read(parse: Parser, text: str, value: float):
    assert pytest.approx(value) == float(parse(text, "--option"))


@pytest.mark.parametrize(
    ("parse", "text"),
    [
        *((planning.parse_share, text) for text in ("", "5", "101%", "-1%", "x", "5 %%")),
        *((planning.parse_rate, text) for text in ("", "0", "0/s", "-1", "5/h", "fast")),
        *((lambda text, _: planning.parse_churn(text), text) for text in ("10%", "10/min", "", "x%/min")),
    ],
)
def test_a_wrong_share_or_rate_is_an_error_that_names_the_option(parse: Parser, text: str):
    with pytest.raises(UsageError, match=r"--(option|churn): "):
        parse(text, "--option")
