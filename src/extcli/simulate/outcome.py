"""The outcome of a simulation in figures, and its comparison with the plan. No I/O."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from math import ceil
from typing import Any

from extcli.simulate.plan import Plan

NO_RESPONSE = 0
"""The status of a request without a response: it may have been applied."""
NOT_SENT = 1
"""The status of a request that found no connection."""
PERCENTILES = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "p999": 0.999, "max": 1.0}
"""The latencies that are reported, by name."""
Counts = Mapping[str, int]
"""Numbers of users by choice, or of entries."""
_MOST_INTERVALS = 60


class RequestOutcomes:
    """The outcome of each request of a plan. Times are seconds from the start."""

    def __init__(self, count: int) -> None:
        self.due = array("d", bytes(8 * count))
        self.status = array("H", bytes(2 * count))
        self.sent = array("d", bytes(8 * count))
        self.done = array("d", bytes(8 * count))
        self.reasons: dict[int, str] = {}
        """Why requests were refused, by index."""
        self.sent_count = 0
        """Requests sent, with repetitions."""
        self.repeat_times: list[float] = []
        """When responses with 429 or 503 came, after which the request was sent again."""
        self.reopened = 0
        self.lag = 0.0
        """The most seconds by which this program itself was late to handle a request."""

    def is_refused_as_closed(self, index: int) -> bool:
        """Return whether a vote was refused because the poll had ended: the reason says `closed` (ruling P4)."""
        return self.status[index] == 400 and "closed" in self.reasons[index].lower()


def is_accepted(status: int) -> bool:
    return 200 <= status < 300


def is_refused(status: int) -> bool:
    return 300 <= status < 500


def may_be_applied(status: int) -> bool:
    """Return whether a request may or may not have been applied."""
    return status == NO_RESPONSE or status >= 500


def latencies(values: Iterable[float]) -> dict[str, float]:
    """Return the latencies in ms by the names of `PERCENTILES`; empty without values. `values` are in seconds.

    Each is the smallest value that this part of the values do not exceed (nearest rank).
    """
    ordered = sorted(values)
    ranks = {name: ceil(part * len(ordered)) - 1 for name, part in PERCENTILES.items()}
    return {name: to_milliseconds(ordered[rank]) for name, rank in ranks.items()} if ordered else {}


def to_milliseconds(seconds: float) -> float:
    return round(seconds * 1000, 3)


def run_facts(plan: Plan, outcomes: RequestOutcomes) -> dict[str, Any]:
    """Return what a crowd's requests came to, as `-o json` prints it: figures, latencies in ms, reasons and series."""
    status, due, done = outcomes.status, outcomes.due, outcomes.done
    answered = [
        (at, end) for at, end, each in zip(due, done, status, strict=True) if each not in (NO_RESPONSE, NOT_SENT)
    ]
    in_time = [at for at, each in zip(outcomes.sent[: plan.late_from], status, strict=False) if each != NOT_SENT]
    span = max(in_time) - min(in_time) if in_time else 0.0
    late = sum(map(outcomes.is_refused_as_closed, range(plan.late_from, len(plan))))
    refusals = [at for at, each in zip(done, status, strict=True) if not is_accepted(each)]
    reasons = Counter(f"{status[index]} {text}".strip() for index, text in outcomes.reasons.items())
    return {
        "figures": {
            "planned": len(plan),
            "sent": outcomes.sent_count,
            "answered": len(answered),
            "refused": sum(map(is_refused, status)) - late + len(outcomes.repeat_times),
            "late": late,
            "failed": sum(each == NOT_SENT or may_be_applied(each) for each in status),
            "unsent": status.count(NOT_SENT),
            "repeated": len(outcomes.repeat_times),
            "reopened": outcomes.reopened,
            "rate": round((len(in_time) - 1) / span, 2) if span else 0.0,
        },
        "latencies": latencies(end - at for at, end in answered),
        "lag": to_milliseconds(outcomes.lag),
        "reasons": dict(reasons.most_common(20)),
        "series": points_over_time(due, answered, [*refusals, *outcomes.repeat_times]),
    }


def points_over_time(
    due: Sequence[float], answered: Sequence[tuple[float, float]], refusals: Sequence[float]
) -> list[dict[str, float | None]]:
    """Return a run in at most 60 intervals of equal length. All times are seconds from the start.

    `answered` has of each response the instant at which its request was due, and the one at which it arrived. An
    interval begins `at`, and has per second the requests that were due in it (`planned`), and the responses and
    refusals that arrived in it; failures and planned refusals count as `refused`. `p50`, `p99` and `max` are the
    latency in ms of the requests that were due in it, `None` without responses.
    """
    arrived = [end for _, end in answered]
    last = max([*due, *arrived, *refusals], default=0.0)
    if not last:
        return []
    width = round_up_to_step(last / (_MOST_INTERVALS - 1))
    instants = {"planned": due, "answered": arrived, "refused": refusals}
    counts = {name: Counter(int(at / width) for at in each) for name, each in instants.items()}
    delays: list[list[float]] = [[] for _ in range(int(last / width) + 1)]
    for at, end in answered:
        delays[int(at / width)].append(end - at)
    found: list[dict[str, float | None]] = []
    for bucket, values in enumerate(delays):
        shown = latencies(values)
        per_second = {name: round(each[bucket] / width, 3) for name, each in counts.items()}
        delay = {name: shown.get(name) for name in ("p50", "p99", "max")}
        found.append({"at": round(bucket * width, 3), **per_second, **delay})
    return found


def round_up_to_step(value: float) -> float:
    """Return a number rounded up to 1, 2 or 5 times a power of ten, at least 0.001; 1 for 0."""
    steps = (factor * 10.0**power for power in range(-3, 15) for factor in (1, 2, 5))
    return next(step for step in steps if value <= step) if value else 1.0


class Verdict(StrEnum):
    """How the result compares with the plan."""

    AS_PLANNED = "as planned"
    DIFFERS = "differs"
    NOT_DECIDED = "not decided"
    """The difference may come from requests without a response, or with 5xx."""


@dataclass(frozen=True, slots=True)
class FigureComparison:
    """One figure of the result."""

    name: str
    planned: int
    possible: tuple[int, int]
    """The least and the most that the responses allow."""
    found: int

    def is_possible(self, number: int) -> bool:
        """Return whether the responses allow this number."""
        return self.possible[0] <= number <= self.possible[1]


@dataclass(frozen=True, slots=True)
class Comparison:
    """The comparison of the whole result with the plan."""

    counts: Sequence[FigureComparison]
    undecided: int
    """How many users, or entries, may or may not have been counted."""
    faults: Sequence[str] = ()
    """Other differences from the plan, such as a late vote that was counted."""
    suspicion: str = ""
    """Another possible cause, if the service has something else than it possible."""

    @property
    def differing(self) -> Sequence[FigureComparison]:
        """The figures that differ from the plan."""
        return [each for each in self.counts if each.found != each.planned]

    @property
    def agrees_with_responses(self) -> bool:
        """Whether the result agrees with the responses, so that a difference from the plan comes from refusals."""
        return not self.faults and all(each.is_possible(each.found) for each in self.counts)

    @property
    def verdict(self) -> Verdict:
        if not self.differing and not self.faults:
            return Verdict.AS_PLANNED
        may_be_planned = all(each.is_possible(each.found) and each.is_possible(each.planned) for each in self.differing)
        return Verdict.NOT_DECIDED if self.undecided and may_be_planned and not self.faults else Verdict.DIFFERS


def late_vote_faults(plan: Plan, outcomes: RequestOutcomes) -> list[str]:
    """Return the unplanned outcomes of late votes, as lines of text."""
    late = range(plan.late_from, len(plan))
    accepted = sum(is_accepted(outcomes.status[index]) for index in late)
    other = sum(is_refused(outcomes.status[index]) and not outcomes.is_refused_as_closed(index) for index in late)
    faults = {"accepted": accepted, "refused, but not because the poll was closed": other}
    return [f"late votes {outcome}: {count:,}" for outcome, count in faults.items() if count]


def possible_counts(plan: Plan, status: Sequence[int]) -> tuple[list[tuple[int, int]], tuple[int, int], int]:
    """Return the least and the most users by choice and in all that the responses allow, and how many are undecided.

    A user has the choice of the last accepted request. After a request without a response, its choice is possible too.
    """
    none = -1
    latest = [none] * plan.viewers
    open_choices: dict[int, set[int]] = {}
    for index in range(plan.late_from):
        viewer = plan.senders[index]
        if is_accepted(status[index]):
            latest[viewer] = plan.choice_indexes[index]
        elif may_be_applied(status[index]):
            open_choices.setdefault(viewer, set()).add(plan.choice_indexes[index])
    possible = [open_choices.get(viewer, set()) | {choice} for viewer, choice in enumerate(latest)]
    most = Counter(choice for choices in possible for choice in choices)
    least = Counter(choice for choices in possible if len(choices) == 1 for choice in choices)
    by_choice = [(least[choice], most[choice]) for choice in range(len(plan.choices))]
    voters = plan.viewers - most[none], plan.viewers - least[none]
    return by_choice, voters, sum(len(choices) > 1 for choices in possible)


def compare_choices(
    plan: Plan, status: Sequence[int], before: Counts, after: Counts, faults: Sequence[str], total: str = "voters"
) -> Comparison:
    """Compare the users of each choice, and all users, before and after a run. Other choices must not change.

    `total` is what all users are called.
    """
    by_choice, voters, undecided = possible_counts(plan, status)
    change = Counter(after)
    change.subtract(before)
    everyone = FigureComparison(total, sum(plan.expected), voters, change.total())
    planned = zip(plan.choices, plan.expected, by_choice, strict=True)
    counts = [FigureComparison(choice, number, possible, change.pop(choice, 0)) for choice, number, possible in planned]
    return Comparison([*counts, *_unplanned_counts(change), everyone], undecided, faults)


def compare_items(
    name: str, status: Sequence[int], found: int, unplanned: Counts, faults: Sequence[str] = (), *, times: int = 1
) -> Comparison:
    """Compare what must be there `times` for each request, such as the entries of a buffer, which are there once."""
    accepted, unknown = times * sum(map(is_accepted, status)), times * sum(map(may_be_applied, status))
    count = FigureComparison(name, times * len(status), (accepted, accepted + unknown), found)
    return Comparison([count, *_unplanned_counts(unplanned)], unknown, faults)


def _unplanned_counts(found: Counts) -> list[FigureComparison]:
    return [FigureComparison(name, 0, (0, 0), number) for name, number in sorted(found.items()) if number]
