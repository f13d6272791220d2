"""What a crowd will send, and the result that follows from it."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction

import pytest

from extcli.errors import UsageError
from extcli.simulate import plan as planning
from extcli.simulate.plan import Crowd, Pace, Plan, crowd_plan

PACE = Pace(500)
MIX = planning.mix("0:60,1:30,2:10")


def plan_of(viewers: int = 5000, **options: object) -> Plan:
    return crowd_plan(Crowd(viewers, MIX, PACE, **{"seed": 7, **options}))  # type: ignore[arg-type]


def last_choices(plan: Plan) -> Counter[str]:
    """Play the requests in time, as a service that keeps the last choice of each viewer."""
    latest = {plan.viewer[index]: plan.choice[index] for index in range(plan.late_from)}
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
    assert expected == planning.rounded([Fraction(each) for each in weights], total)


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
    assert sum(plan.expected) == len(set(plan.viewer[: plan.late_from]))


def test_viewers_who_change_their_mind_first_choose_something_else():
    plan = plan_of(change_mind=Fraction(1, 20))
    chosen: dict[int, list[int]] = {}
    for viewer, choice in zip(plan.viewer, plan.choice, strict=True):
        chosen.setdefault(viewer, []).append(choice)
    changed = [each for each in chosen.values() if len(each) > 1]

    assert 250 == len(changed)
    assert all(len(each) == 2 and each[0] != each[1] for each in changed)


def test_late_viewers_send_nothing_in_time():
    plan = plan_of(late=Fraction(1, 50))

    assert 100 == plan.late == len(plan) - 4900
    assert set(range(4900)) == set(plan.viewer[: plan.late_from])
    assert set(range(4900, 5000)) == set(plan.viewer[plan.late_from :])


def test_the_same_seed_gives_the_same_plan_and_another_seed_another():
    options = {"requests": 9000, "change_mind": Fraction(1, 10), "late": Fraction(1, 10)}
    assert plan_of(**options) == plan_of(**options)
    assert plan_of(**options).viewer != plan_of(**options, seed=8).viewer
    assert plan_of().users[0] != plan_of(seed=8).users[0]


def test_a_steady_rate_plans_equal_gaps():
    plan = plan_of(1000)

    assert pytest.approx(999 / 500) == plan.duration
    assert {0.002} == {round(later - earlier, 9) for earlier, later in zip(plan.at, plan.at[1:], strict=False)}


def test_a_burst_is_densest_at_its_start_and_ends_in_time():
    at = Pace(burst=3.0).instants(3000)

    assert 0 == at[0]
    assert at[-1] < 3
    assert list(at) == sorted(at)
    assert at[1500] == pytest.approx(3 * (1 - 0.5**0.5))


def test_too_few_votes_are_an_error_with_the_least_number():
    with pytest.raises(
        UsageError, match="--votes: 300 are too few for 5,000 viewers with 250 changes of mind"
    ) as error:
        plan_of(requests=300, change_mind=Fraction(1, 20))
    assert "5,250" in error.value.fix


def test_votes_without_a_viewer_in_time_are_an_error():
    with pytest.raises(UsageError, match="--votes needs a viewer who is not late"):
        plan_of(10, requests=20, late=Fraction(1))

    assert 10 == plan_of(10, late=Fraction(1)).late


def test_a_mind_cannot_change_in_a_mix_of_one():
    with pytest.raises(UsageError, match="--change-mind needs a mix of two choices or more"):
        crowd_plan(Crowd(10, planning.mix("0:1"), PACE, change_mind=Fraction(1, 2)))


@pytest.mark.parametrize("text", ["", "0", "0:0", "0:-1", ":5", "0:5,,1:5", "0:5,0:6", "0:x"])
def test_a_wrong_mix_is_an_error(text: str):
    with pytest.raises(UsageError, match="--mix"):
        planning.mix(text)


def test_a_choice_may_contain_colons():
    assert {"12:30": Fraction(2), "x": Fraction(1, 2)} == planning.mix("12:30:2, x:0.5")


@pytest.mark.parametrize(("text", "value"), [("5%", Fraction(1, 20)), ("0.05", Fraction(1, 20)), ("100%", 1), ("0", 0)])
def test_shares_are_percentages_or_fractions(text: str, value: object):
    assert value == planning.parse_share(text, "--late")


@pytest.mark.parametrize("text", ["", "5", "101%", "-1%", "x", "5 %%"])
def test_a_wrong_share_is_an_error_that_names_the_option(text: str):
    with pytest.raises(UsageError, match="--late"):
        planning.parse_share(text, "--late")


@pytest.mark.parametrize(("text", "value"), [("500/s", 500), ("500", 500), ("600/min", 10), ("0.5/s", 0.5)])
def test_rates_are_per_second_or_per_minute(text: str, value: float):
    assert value == planning.parse_rate(text, "--rate")


@pytest.mark.parametrize("text", ["", "0", "0/s", "-1", "5/h", "fast"])
def test_a_wrong_rate_is_an_error(text: str):
    with pytest.raises(UsageError, match="--rate"):
        planning.parse_rate(text, "--rate")


def test_churn_is_a_share_of_the_connections_per_time():
    assert pytest.approx(0.1 / 60) == planning.churn("10%/min")
    for wrong in ("10%", "10/min", "", "x%/min"):
        with pytest.raises(UsageError, match="--churn"):
            planning.churn(wrong)
