"""Runs a crowd: says what the result will be, sends the requests, and compares."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NoReturn

from extcli import clock
from extcli.api.http import proxy_of
from extcli.api.retry import RATE_LIMITED, Deadline, pause
from extcli.api.token_sources import Credentials, SelfSigned
from extcli.errors import CliError, Refused, UsageError, Withheld
from extcli.output.sanitize import visible
from extcli.session import Session
from extcli.simulate import run
from extcli.simulate.conclusion import About, Expectation, conclude, document
from extcli.simulate.connection import NO_ANSWER, NOT_SENT
from extcli.simulate.outcome import Comparison, Outcome, Point, series
from extcli.simulate.plan import Pace, Plan
from extcli.simulate.run import Manner
from extcli.simulate.subjects import Buffer, Poll, Subject

_PER_VIEWER = 50
"""Requests per second of one viewer in production, half of what the service allows by default."""


@dataclass(frozen=True, slots=True)
class Options:
    """The options that all simulations share."""

    pace: Pace
    manner: Manner
    adds: bool = False
    """Whether the poll, ranking or buffer may have content already."""
    expectations: Sequence[Expectation] = field(default_factory=list)
    report: Path | None = None


def simulate(session: Session, kind: str, subject: Subject, plan: Plan, options: Options) -> None:
    """Run a plan, print what became of it, and raise an error if it is not as planned or expected."""
    credentials = run.viewer_credentials(session)
    if proxy := proxy_of(session.resolver.url()):
        session.output.report(f"{proxy} is ignored: a crowd connects to the service directly")
    if options.manner.is_production:
        _check_pace(plan)
    before = _content(subject, adds=options.adds)
    close = _closing(session, subject, plan)
    will = promise(subject, plan)
    for line in (will, *plan.notes):
        session.output.report(line)
    if session.dry_run:
        _withhold(session, subject, plan, credentials)
    tokens = _tokens(plan, credentials)
    if options.adds:
        _check_users(subject, plan, tokens)
    url, client_id = session.resolver.url(), session.resolver.client_id()
    requests = run.requests_of(url, client_id, plan, tokens, lambda index: subject.call(plan, index))
    outcome = run.run(session, subject, plan, requests, options.manner, close=close)
    comparison = _compared(session, subject, plan, before, outcome)
    about = About(
        simulation=kind,
        what=subject.what,
        id=subject.name,
        requests=subject.requests,
        seed=plan.seed,
        viewers=plan.viewers,
        will=will,
        notes=plan.notes,
    )
    found = document(about, comparison, outcome.tally, options.expectations, _points(outcome))
    conclude(session, found, comparison, options.report)


def _content(subject: Subject, *, adds: bool) -> Mapping[str, int]:
    """Return the counts before the run. Raises `UsageError` if there are any, unless the run adds to them."""
    before = subject.read()
    if before and not adds:
        raise UsageError(
            f"{subject.what} {visible(subject.name)} has {subject.requests} already: {sum(before.values()):,}",
            fix="use another id or clear it, or compare the difference with --add",
        )
    return before


def _withhold(session: Session, subject: Subject, plan: Plan, credentials: Credentials) -> NoReturn:
    """Show the requests of the plan instead of sending them."""
    assert session.dry_run is not None
    users, url = plan.users, session.resolver.url()
    for index, viewer in enumerate(plan.viewer):
        call = subject.call(plan, index)
        session.dry_run.show(url, call, call.query, credentials, user=users[viewer])
    raise Withheld


def _tokens(plan: Plan, credentials: Credentials) -> list[str]:
    """Return a token for each viewer, which stays valid during the run."""
    if isinstance(credentials, SelfSigned):
        credentials.follow_clock()
        credentials.lifetime += round(plan.duration * 2000)
    return credentials.tokens_for(plan.users)


def _compared(
    session: Session, subject: Subject, plan: Plan, before: Mapping[str, int], outcome: Outcome
) -> Comparison:
    """Read the result and compare it with the plan. If it cannot be read, report what was sent."""
    deadline, attempts = Deadline(session.resolver.timeout()), 0
    try:
        while True:
            try:
                return subject.compare(plan, outcome.measured.status, before, outcome.faults)
            except Refused as error:  # the crowd itself may have used up the rate of its client id
                wait = pause(None, attempts)
                if error.status != RATE_LIMITED or not deadline.allows(wait):
                    raise
            clock.sleep(wait)
            attempts += 1
    except CliError:
        tally = outcome.tally
        done = f"{tally.sent:,} sent, {tally.answered:,} answered, {tally.refused:,} refused, {tally.failed:,} failed"
        session.output.report(f"{subject.requests}: {done}; the result cannot be read:")
        raise


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


def _check_users(subject: Subject, plan: Plan, tokens: Sequence[str]) -> None:
    """Raise `UsageError` if viewers of this seed were here before: the result would not grow by them."""
    is_repeated = (isinstance(subject, Poll) and subject.has_voted(tokens[0])) or (
        isinstance(subject, Buffer) and subject.has_entries(plan.seed)
    )
    if is_repeated:
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


def _points(outcome: Outcome) -> list[Point]:
    status, done = outcome.measured.status, outcome.measured.done
    answered = [each not in (NO_ANSWER, NOT_SENT) for each in status]
    refusals = [done[index] for index, each in enumerate(status) if not 200 <= each < 300]
    return series(outcome.due, done, answered, [*refusals, *outcome.measured.repeats_at])
