"""From the options of a crowd to its result: plans, says what will be, runs, compares, reports."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from extcli.api.token_sources import SelfSigned
from extcli.errors import CliError, UsageError, Withheld
from extcli.output.sanitize import visible
from extcli.session import Session
from extcli.simulate import run, views
from extcli.simulate.conclusion import document, error_of
from extcli.simulate.expectations import Expectation
from extcli.simulate.figures import series
from extcli.simulate.plan import Pace, Plan
from extcli.simulate.run import Manner, Outcome
from extcli.simulate.subjects import Buffer, Poll, Subject
from extcli.simulate.work import NO_ANSWER, NOT_SENT

_PER_VIEWER = 50
"""Requests per second of one viewer in production, half of what the service allows by default."""


@dataclass(frozen=True, slots=True)
class Options:
    """What the options of every crowd say."""

    pace: Pace
    manner: Manner
    adds: bool = False
    """Whether the poll, ranking or buffer may have content already."""
    expectations: Sequence[Expectation] = field(default_factory=list)
    report: Path | None = None


def simulate(session: Session, kind: str, subject: Subject, plan: Plan, options: Options) -> None:
    """Run a plan, print what became of it, and raise an error if it is not as planned or expected."""
    credentials = run.viewer_credentials(session)
    if options.manner.is_production:
        _check_pace(plan)
    before = subject.read()
    if before and not options.adds:
        raise UsageError(
            f"{subject.what} {visible(subject.name)} has {subject.requests} already: {sum(before.values()):,}",
            fix="use another id or clear it, or compare the difference with --add",
        )
    closing = _closing(session, subject, plan)
    for line in (promise(subject, plan), *plan.notes):
        session.output.report(line)
    if session.dry_run:
        users = plan.users
        for index, viewer in enumerate(plan.viewer):
            call = subject.call(plan, index)
            session.dry_run.show(session.resolver.url(), call, call.query, credentials, user=users[viewer])
        raise Withheld
    if isinstance(credentials, SelfSigned):
        # A later token would be refused in the middle of the run.
        credentials.follow_clock()
        credentials.lifetime += round(plan.duration * 2000)
    tokens = credentials.tokens_for(plan.users)
    _check_users(subject, plan, tokens, adds=options.adds)
    url, client_id = session.resolver.url(), session.resolver.client_id()
    requests = run.requests_of(url, client_id, plan, tokens, lambda index: subject.call(plan, index))
    outcome = run.run(session, subject, plan, requests, options.manner, close=closing)
    try:
        comparison = subject.compare(plan, outcome.measured.status, before, outcome.faults)
    except CliError:
        tally = outcome.tally
        done = f"{tally.sent:,} sent, {tally.answered:,} answered, {tally.refused:,} refused, {tally.failed:,} failed"
        session.output.report(f"{subject.requests}: {done}; the result cannot be read:")
        raise
    about = {
        "simulation": kind,
        "what": subject.what,
        "id": subject.name,
        "requests": subject.requests,
        "seed": plan.seed,
        "viewers": plan.viewers,
        "will": promise(subject, plan),
        "notes": list(plan.notes),
    }
    found = document(about, comparison, outcome.tally, options.expectations, _points(outcome))
    conclude(session, found, options.report)
    if error := error_of(found, comparison):
        raise error


def conclude(session: Session, found: dict[str, Any], report: Path | None) -> None:
    """Print the result of a run, and write its report."""
    session.output.show_value(found, views.RUN)
    if report is not None:
        from extcli.simulate.report import write

        write(report, found)
        session.output.note(f"report: {report}")


def promise(subject: Subject, plan: Plan) -> str:
    """Return what the result will be, in words."""
    late = f"; {plan.late:,} late {subject.requests} are refused" if plan.late else ""
    if isinstance(subject, Buffer):
        return f"will: {len(plan):,} entries of {plan.viewers:,} viewers, each of them once"
    votes = [f"{count:,} for {visible(choice)}" for choice, count in zip(plan.choices, plan.expected, strict=True)]
    votes[0] = votes[0].replace(" for", f" {subject.requests} for", 1)
    total = sum(plan.expected)
    repeated = f"; {plan.late_from:,} {subject.requests} are sent" if plan.late_from > total else ""
    mean = ""
    if isinstance(subject, Poll) and total:
        sums = (int(choice) * count for choice, count in zip(plan.choices, plan.expected, strict=True))
        mean = f", mean {sum(sums) / total:.6g}"
    return f"will: {', '.join(votes)}; {total:,} {plan.total}{mean}{repeated}{late}"


def _check_pace(plan: Plan) -> None:
    """Raise `UsageError` if a viewer would exceed the rate that production allows a caller."""
    average = plan.late_from / plan.viewers / plan.duration if plan.duration else 0.0
    if average > _PER_VIEWER:
        raise UsageError(
            f"each viewer would send {average:,.0f} requests per second",
            why=f"production allows a caller 100 per second by default; a crowd keeps to {_PER_VIEWER}",
            fix="use more viewers or a lower --rate",
        )


def _check_users(subject: Subject, plan: Plan, tokens: Sequence[str], *, adds: bool) -> None:
    """Raise `UsageError` if viewers of this seed were here before, as the result would not grow by them."""
    again = False
    if adds and isinstance(subject, Poll):
        again = subject.has_voted(tokens[0])
    elif adds and isinstance(subject, Buffer):
        again = subject.has_entries(plan.seed)
    if again:
        raise UsageError(
            f"{subject.what} {visible(subject.name)} has {subject.requests} of seed {plan.seed} already",
            why="--add needs viewers that have not been here",
            fix="use another --seed",
        )


def _closing(session: Session, subject: Subject, plan: Plan) -> Callable[[], float] | None:
    """Return what closes a poll before late votes. Raises `UsageError` if it cannot close, or closes too early."""
    if not isinstance(subject, Poll):
        return None
    subject.read_definition()
    left = (subject.closes_at - session.now()) / 1000 if subject.closes_at else None
    if left is not None and left <= plan.duration:
        raise UsageError(
            f"poll {visible(subject.name)} closes in {left:,.1f} s, and the votes take {plan.duration:,.1f} s",
            fix="use a higher --rate, or move the end with `extcli vote edit`",
        )
    if not plan.late:
        return None
    subject.check_closing()

    def close() -> float:
        if subject.closes_at:
            return max((subject.closes_at - session.now()) / 1000, 0) + run.MARGIN
        subject.disable()
        return 0.0

    return close


def _points(outcome: Outcome) -> Any:
    status, done = outcome.measured.status, outcome.measured.done
    answered = [each not in (NO_ANSWER, NOT_SENT) for each in status]
    refusals = [done[index] for index, each in enumerate(status) if not 200 <= each < 300]
    return series(outcome.due, done, answered, [*refusals, *outcome.measured.repeats_at])
