"""The outcome of a simulation in figures, and its comparison with the plan. No I/O."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from math import ceil

from extcli.api.http import httpx
from extcli.simulate.plan import Plan

NO_RESPONSE = 0
"""The status of a request without a response: it may have been applied."""
NOT_SENT = 1
"""The status of a request that found no connection."""


@dataclass(frozen=True, slots=True)
class Work:
    """Requests, each with its sender and its planned instant in seconds from the start."""

    request: Callable[[int], httpx.Request]
    """Returns a request by its index."""
    viewer: Sequence[int]
    at: Sequence[float]
    reopen_at: Sequence[tuple[float, float]] = ()
    """When a connection is closed and opened again, and which: a share of the pool, 0 to 1."""


@dataclass(slots=True)
class Measured:
    """The outcome of each request. Times are seconds from the start."""

    status: array[int]
    sent: array[float]
    done: array[float]
    reasons: dict[int, str] = field(default_factory=dict)
    """Why requests were refused, by index."""
    sendings: int = 0
    """Requests sent, with repetitions."""
    repeated: int = 0
    """Responses with 429 or 503 after which the request was sent again."""
    repeats_at: array[float] = field(default_factory=lambda: array("d"))
    reopened: int = 0
    lag: float = 0.0
    """The most seconds by which this program itself was late to handle a request."""

    @classmethod
    def of(cls, count: int) -> Measured:
        return cls(array("H", bytes(2 * count)), array("d", bytes(8 * count)), array("d", bytes(8 * count)))


PERCENTILES = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "p999": 0.999, "max": 1.0}
"""The latencies that are reported, by name."""
_BUCKETS = 60


@dataclass(slots=True)
class Tally:
    """The outcomes of a run's requests, and how long the requests took."""

    planned: int
    sent: int
    answered: int
    refused: int
    """Responses with 4xx except the planned ones, and each 429 or 503 before a repetition."""
    late: int
    """Requests after the end that were refused as closed, as planned."""
    failed: int
    """Requests without a response, and responses with 5xx."""
    unsent: int
    """Failed requests that found no connection: they were not applied."""
    repeated: int
    reopened: int
    rate: float
    """Requests in time that were sent per second, from the first planned instant to the last sending."""
    lag: float
    """The most seconds by which this program itself was late."""
    latencies: dict[str, float]
    """Seconds from the planned instant to the response, by the names of `PERCENTILES`; empty without responses."""
    reasons: dict[str, int] = field(default_factory=dict)
    """How often each refusal came, the most frequent first."""

    def value(self, name: str) -> float | None:
        """Return the measured value with this name, latencies in ms; `None` if it was not measured."""
        if name in PERCENTILES:
            seconds = self.latencies.get(name)
            return None if seconds is None else seconds * 1000
        return float(getattr(self, name))


def percentile(ordered: Sequence[float], part: float) -> float:
    """Return the smallest value that `part` of the values do not exceed (nearest rank)."""
    return ordered[max(ceil(part * len(ordered)) - 1, 0)]


def latencies(values: Sequence[float]) -> dict[str, float]:
    """Return the latencies by the names of `PERCENTILES`; empty without values."""
    ordered = sorted(values)
    return {name: percentile(ordered, part) for name, part in PERCENTILES.items()} if ordered else {}


def points_over_time(
    due: Sequence[float], done: Sequence[float], is_answered: Sequence[bool], refusals: Sequence[float]
) -> list[dict[str, float | None]]:
    """Return a run in at most 60 intervals of equal length. All times are seconds from the start.

    An interval begins `at`, and has per second the requests that were due in it (`planned`), and the responses and
    refusals that arrived in it; failures and planned refusals count as `refused`. `p50`, `p99` and `max` are the
    latency in ms of the requests that were due in it, `None` without responses.
    """
    end = max([*due, *done, *refusals], default=0.0)
    if not end:
        return []
    width = rounded_up(end / (_BUCKETS - 1))
    count = int(end / width) + 1
    planned, answered, refused = [0] * count, [0] * count, [0] * count
    delays: list[list[float]] = [[] for _ in range(count)]
    for at, finished, is_one in zip(due, done, is_answered, strict=True):
        bucket = int(at / width)
        planned[bucket] += 1
        if is_one:
            answered[int(finished / width)] += 1
            delays[bucket].append(finished - at)
    for at in refusals:
        refused[int(at / width)] += 1
    counts = {"planned": planned, "answered": answered, "refused": refused}
    found = []
    for bucket, values in enumerate(delays):
        seconds = latencies(values)
        found.append(
            {
                "at": round(bucket * width, 3),
                **{name: round(each[bucket] / width, 3) for name, each in counts.items()},
                **{name: in_ms(seconds[name]) if values else None for name in ("p50", "p99", "max")},
            }
        )
    return found


def in_ms(seconds: float) -> float:
    return round(seconds * 1000, 3)


def rounded_up(value: float) -> float:
    """Return a number rounded up to 1, 2 or 5 times a power of ten, at least 0.001; 1 for 0."""
    step = 0.001
    while value > 0:
        for factor in (1, 2, 5):
            if value <= step * factor:
                return step * factor
        step *= 10
    return 1.0


_CLOSED = "closed"
"""The reason of a late vote's refusal has this word (ruling P4)."""


@dataclass(slots=True)
class Outcome:
    """The outcomes of a plan's requests. Times are seconds from the start."""

    measured: Measured
    due: Sequence[float]
    tally: Tally
    faults: Sequence[str]
    """Late votes that were not refused as they must be, as sentences."""


def outcome_of(plan: Plan, in_time: Measured, late: Measured, offset: float) -> Outcome:
    """Join both parts of a run, and count. The second part began `offset` seconds after the first."""
    measured = _joined_parts(plan, in_time, late, offset)
    due = plan.at[: plan.late_from] + _moved(plan.at[plan.late_from :], offset)
    closed = sum(status == 400 and _CLOSED in late.reasons[index].lower() for index, status in enumerate(late.status))
    return Outcome(measured, due, _tally(plan, measured, due, closed), _faults(late, closed))


def _joined_parts(plan: Plan, in_time: Measured, late: Measured, offset: float) -> Measured:
    return Measured(
        status=in_time.status + late.status,
        sent=in_time.sent + _moved(late.sent, offset),
        done=in_time.done + _moved(late.done, offset),
        reasons=in_time.reasons | {index + plan.late_from: text for index, text in late.reasons.items()},
        sendings=in_time.sendings + late.sendings,
        repeated=in_time.repeated + late.repeated,
        repeats_at=in_time.repeats_at + _moved(late.repeats_at, offset),
        reopened=in_time.reopened + late.reopened,
        lag=max(in_time.lag, late.lag),
    )


def _faults(late: Measured, closed: int) -> list[str]:
    """Return what late votes did that was not planned. `closed` were refused because the poll had ended."""
    accepted = sum(map(is_accepted, late.status))
    other = sum(map(is_refused, late.status)) - closed
    faults = [f"{accepted:,} late {_votes(accepted)} accepted"] if accepted else []
    return faults + ([f"{other:,} late {_votes(other)} refused for a reason other than the end"] if other else [])


def _tally(plan: Plan, measured: Measured, due: Sequence[float], closed: int) -> Tally:
    status = measured.status
    answered = [index for index, each in enumerate(status) if each not in (NO_RESPONSE, NOT_SENT)]
    in_time = zip(measured.sent[: plan.late_from], status, strict=False)
    sent = [at for at, each in in_time if each != NOT_SENT]
    span = max(sent) - min(sent) if len(sent) > 1 else 0.0
    reasons = Counter(f"{status[index]} {text}".strip() for index, text in measured.reasons.items())
    return Tally(
        planned=len(plan),
        sent=measured.sendings,
        answered=len(answered),
        refused=sum(map(is_refused, status)) - closed + measured.repeated,
        late=closed,
        failed=sum(each == NOT_SENT or is_unknown(each) for each in status),
        unsent=sum(each == NOT_SENT for each in status),
        repeated=measured.repeated,
        reopened=measured.reopened,
        rate=(len(sent) - 1) / span if span else 0.0,
        lag=measured.lag,
        latencies=latencies([measured.done[index] - due[index] for index in answered]),
        reasons=dict(reasons.most_common(20)),
    )


def _votes(count: int) -> str:
    return "vote was" if count == 1 else "votes were"


def _moved(times: array[float], offset: float) -> array[float]:
    return array("d", (each + offset for each in times))


ENTRIES = "entries"


class Verdict(StrEnum):
    """How the result compares with the plan."""

    AS_PLANNED = "as planned"
    DIFFERS = "differs"
    NOT_DECIDED = "not decided"
    """The difference may come from requests without a response, or with 5xx."""


@dataclass(frozen=True, slots=True)
class Count:
    """One figure of the result."""

    name: str
    planned: int
    acknowledged: tuple[int, int]
    """The least and the most that the responses allow."""
    found: int

    @property
    def differs(self) -> bool:
        return self.found != self.planned

    @property
    def agrees_with_known_responses(self) -> bool:
        """Whether the result agrees with every response that arrived."""
        return self.acknowledged[0] <= self.found <= self.acknowledged[1]

    @property
    def is_undecidable(self) -> bool:
        """Whether lost responses make it impossible to judge the result: both `found` and `planned` are possible."""
        return self.agrees_with_known_responses and self.acknowledged[0] <= self.planned <= self.acknowledged[1]


@dataclass(frozen=True, slots=True)
class Comparison:
    """The comparison of the whole result with the plan."""

    counts: Sequence[Count]
    undecided: int
    """How many users, or entries, may or may not have been counted."""
    faults: Sequence[str] = field(default_factory=list)
    """Other differences from the plan, such as a late vote that was counted."""
    suspicion: str = ""
    """Another possible cause, if the service has something else than it acknowledged."""

    @property
    def verdict(self) -> Verdict:
        wrong = [count for count in self.counts if count.differs]
        if not wrong and not self.faults:
            return Verdict.AS_PLANNED
        is_open = not self.faults and all(count.is_undecidable for count in wrong)
        return Verdict.NOT_DECIDED if self.undecided and is_open else Verdict.DIFFERS

    @property
    def agrees_with_responses(self) -> bool:
        """Whether the result agrees with the responses, so that a difference from the plan comes from refusals."""
        return not self.faults and all(count.agrees_with_known_responses for count in self.counts)


def is_accepted(status: int) -> bool:
    return 200 <= status < 300


def is_refused(status: int) -> bool:
    return 300 <= status < 500


def is_unknown(status: int) -> bool:
    """Return whether a request may or may not have been applied."""
    return status == NO_RESPONSE or status >= 500


def possible_counts(plan: Plan, status: Sequence[int]) -> tuple[list[tuple[int, int]], tuple[int, int], int]:
    """Return the least and the most users by choice and in all that the responses allow, and how many are undecided.

    A user has the choice of the last accepted request. After a request without a response, its choice is possible too.
    """
    none = -1
    latest = [none] * plan.viewers
    open_choices: dict[int, set[int]] = {}
    for index in range(plan.late_from):
        viewer = plan.viewer[index]
        if is_accepted(status[index]):
            latest[viewer] = plan.choice[index]
        elif is_unknown(status[index]):
            open_choices.setdefault(viewer, set()).add(plan.choice[index])
    least, most = [0] * len(plan.choices), [0] * len(plan.choices)
    voters_least = voters_most = undecided = 0
    for viewer, choice in enumerate(latest):
        possible = open_choices.get(viewer, set()) | {choice}
        undecided += len(possible) > 1
        voters_least += none not in possible
        voters_most += possible != {none}
        for each in possible - {none}:
            most[each] += 1
            least[each] += len(possible) == 1
    return list(zip(least, most, strict=True)), (voters_least, voters_most), undecided


def compare(
    plan: Plan, status: Sequence[int], before: Mapping[str, int], after: Mapping[str, int], faults: Sequence[str]
) -> Comparison:
    """Compare the users of each choice, and all users, before and after a run. Other choices must not change."""
    by_choice, voters, undecided = possible_counts(plan, status)
    counts = []
    for choice, planned, answers in zip(plan.choices, plan.expected, by_choice, strict=True):
        counts.append(Count(choice, planned, answers, after.get(choice, 0) - before.get(choice, 0)))
    for choice in sorted({*before, *after} - set(plan.choices)):
        if (change := after.get(choice, 0) - before.get(choice, 0)) != 0:
            counts.append(Count(choice, 0, (0, 0), change))
    total = sum(after.values()) - sum(before.values())
    counts.append(Count(plan.total, sum(plan.expected), voters, total))
    return Comparison(counts, undecided, faults)


def compare_entries(
    plan: Plan, status: Sequence[int], found: Mapping[str, int], faults: Sequence[str] = ()
) -> Comparison:
    """Compare the entries of a buffer. Each must be there once. `found` also counts what must not be there."""
    accepted = sum(map(is_accepted, status))
    unknown = sum(map(is_unknown, status))
    counts = [Count(ENTRIES, len(plan), (accepted, accepted + unknown), found.get(ENTRIES, 0))]
    counts += [Count(name, 0, (0, 0), found[name]) for name in found if name != ENTRIES]
    return Comparison(counts, unknown, faults)
