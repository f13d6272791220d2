"""What became of the requests of a plan: joins both parts of a run, and counts. Pure."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from extcli.simulate.figures import Tally, latencies
from extcli.simulate.plan import Plan
from extcli.simulate.verdict import is_accepted, is_refused, is_unknown
from extcli.simulate.work import NO_ANSWER, NOT_SENT, Measured

_CLOSED = "closed"
"""The reason of a late vote's refusal has this word (ruling P4)."""


@dataclass(slots=True)
class Outcome:
    """What became of the requests of a plan. Times are seconds from the start."""

    measured: Measured
    due: Sequence[float]
    tally: Tally
    faults: Sequence[str]
    """Late votes that were not refused as they must be, as sentences."""


def outcome_of(plan: Plan, in_time: Measured, late: Measured, offset: float) -> Outcome:
    """Join both parts of a run, of which the second began `offset` seconds after the first, and count."""
    measured = _joined(plan, in_time, late, offset)
    due = plan.at[: plan.late_from] + _moved(plan.at[plan.late_from :], offset)
    closed = sum(status == 400 and _CLOSED in late.reasons[index].lower() for index, status in enumerate(late.status))
    return Outcome(measured, due, _tally(plan, measured, due, closed), _faults(late, closed))


def _joined(plan: Plan, in_time: Measured, late: Measured, offset: float) -> Measured:
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
    return faults + ([f"{other:,} late {_votes(other)} refused for another reason than the end"] if other else [])


def _tally(plan: Plan, measured: Measured, due: Sequence[float], closed: int) -> Tally:
    status = measured.status
    answered = [index for index, each in enumerate(status) if each not in (NO_ANSWER, NOT_SENT)]
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
