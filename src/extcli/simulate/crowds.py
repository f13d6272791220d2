"""Runs a simulation: predicts the result, sends the requests, and compares."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from extcli import clock
from extcli.api.call import Call
from extcli.api.http import headers, httpx, proxy_of, url_of
from extcli.api.retry import is_asked_for, until_done
from extcli.api.token_sources import Credentials, SelfSigned
from extcli.config import settings
from extcli.errors import CliError, UsageError, Withheld
from extcli.output.progress import progress_bar_of
from extcli.output.sanitize import visible
from extcli.session import VIEWER, Session
from extcli.simulate.expectations import Expectation
from extcli.simulate.outcome import (
    NO_RESPONSE,
    NOT_SENT,
    Comparison,
    Measured,
    Outcome,
    Work,
    outcome_of,
    points_over_time,
)
from extcli.simulate.plan import Pace, Plan
from extcli.simulate.pool import Pool
from extcli.simulate.result import conclude, document
from extcli.simulate.subjects import Buffer, Poll, Subject

_PER_VIEWER = 50
"""Requests per second of one viewer in production, half of what the service allows by default."""


@dataclass(frozen=True, slots=True)
class Manner:
    """How requests are sent: their pace, the number of connections, and retries."""

    connections: int = 100
    churn: float = 0.0
    """The share of the connections that is closed and opened again per second."""
    is_production: bool = False


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
    """Run a plan and print its outcome. Raises an error if the result differs from the plan or from `--expect`."""
    credentials = viewer_credentials(session)
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
        users, url = plan.users, session.resolver.url()
        for index, viewer in enumerate(plan.viewer):
            call = subject.call(plan, index)
            session.dry_run.show(url, call, call.query, credentials, user=users[viewer])
        raise Withheld
    tokens = _tokens(plan, credentials)
    if options.adds:
        _check_users(subject, plan, tokens)
    request = requests_of(session, plan, tokens, lambda index: subject.call(plan, index))
    outcome = run(session, subject, plan, request, options.manner, close=close)
    comparison = _compare_with_plan(session, subject, plan, before, outcome)
    found = document(
        comparison,
        outcome.tally,
        options.expectations,
        _points(outcome),
        simulation=kind,
        what=subject.what,
        id=subject.name,
        requests=subject.requests,
        seed=plan.seed,
        viewers=plan.viewers,
        will=will,
        notes=plan.notes,
    )
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


def _tokens(plan: Plan, credentials: Credentials) -> list[str]:
    """Return a token for each viewer, which stays valid during the run."""
    if isinstance(credentials, SelfSigned):
        credentials.follow_clock()
        credentials.lifetime += round(plan.duration * 2000)
    return credentials.tokens_for(plan.users)


def _compare_with_plan(
    session: Session, subject: Subject, plan: Plan, before: Mapping[str, int], outcome: Outcome
) -> Comparison:
    """Read the result and compare it with the plan. If it cannot be read, report what was sent."""
    try:
        return until_done(
            lambda: subject.compare(plan, outcome.measured.status, before, outcome.faults),
            session.resolver.timeout(),
            is_asked_for,  # the crowd itself may have used up the rate of its client id
        )
    except CliError:
        tally = outcome.tally
        done = f"{tally.sent:,} sent, {tally.answered:,} answered, {tally.refused:,} refused, {tally.failed:,} failed"
        session.output.report(f"{subject.requests}: {done}; the result could not be read:")
        raise


def promise(subject: Subject, plan: Plan) -> str:
    """Return the predicted result in words."""
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
            why="--add needs viewers who have not taken part yet",
            fix="use another --seed",
        )


def _closing(session: Session, subject: Subject, plan: Plan) -> Callable[[], float] | None:
    """Return the function that closes a poll before late votes.

    Raises `UsageError` if the poll cannot close, or closes too early.
    """
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
            return max((subject.closes_at - session.now()) / 1000, 0) + _MARGIN
        subject.disable()
        return 0.0

    return close


def _points(outcome: Outcome) -> list[dict[str, float | None]]:
    status, done = outcome.measured.status, outcome.measured.done
    answered = [each not in (NO_RESPONSE, NOT_SENT) for each in status]
    refusals = [done[index] for index, each in enumerate(status) if not 200 <= each < 300]
    return points_over_time(outcome.due, done, answered, [*refusals, *outcome.measured.repeats_at])


_MARGIN = 0.2
"""Seconds after the end of a poll's window at which late votes begin."""


def viewer_credentials(session: Session) -> Credentials:
    """Return the credentials that make a token for each viewer. Raises `UsageError` if they cannot."""
    identity = session.resolver.identity(VIEWER)
    chosen = session.resolver.find(settings.ACTS_AS)
    if identity.role != "viewer" or (chosen and chosen.value.user):
        label = chosen.label if chosen else "the default"
        raise UsageError(
            f"a simulated crowd cannot act as {identity} ({label})",
            fix="leave out --as, or use --as viewer without a user",
        )
    found = session.credentials(VIEWER)
    if found.given:
        raise UsageError(
            "one token cannot act for a crowd",
            why="each viewer needs a token, and EXTCLI_TOKEN (or --token-file) belongs to one user",
            fix="unset it, and set EXTCLI_SECRET or use a sandbox",
        )
    return found


def requests_of(
    session: Session, plan: Plan, tokens: Sequence[str], call: Callable[[int], Call]
) -> Callable[[int], httpx.Request]:
    """Return the function that makes a request of a plan by its index. All go to one address."""
    client_id, first = session.resolver.client_id(), call(0)
    url = httpx.URL(url_of(session.resolver.url() + first.path, first.query))

    def request(index: int) -> httpx.Request:
        body = call(index).body
        assert isinstance(body, bytes)
        fields = headers(body, f"{client_id} {tokens[plan.viewer[index]]}")
        return httpx.Request(first.method, url, headers=fields, content=body)

    return request


def run(
    session: Session,
    subject: Subject,
    plan: Plan,
    request: Callable[[int], httpx.Request],
    manner: Manner,
    *,
    close: Callable[[], float] | None = None,
) -> Outcome:
    """Send a plan's requests. `close` ends the poll before the late ones, and returns the seconds to wait after it."""
    sending = _Sending(session, subject, plan, request, manner, close)
    gc.collect()
    gc.freeze()  # a collection of everything would be a pause of up to 100 ms
    try:
        with asyncio.Runner(loop_factory=loop_factory()) as runner:
            return runner.run(sending.run())
    except KeyboardInterrupt:
        session.output.report(f"interrupted after {sending.done()[1]} {subject.requests}; the result is not compared")
        raise


@dataclass
class _Sending:
    """One run of a plan: first the requests before the poll closes, then those after it."""

    session: Session
    subject: Subject
    plan: Plan
    request: Callable[[int], httpx.Request]
    manner: Manner
    close: Callable[[], float] | None
    _done: int = 0
    _pool: Pool | None = None
    _first_instant: float = 0.0

    async def run(self) -> Outcome:
        plan = self.plan
        async with progress_bar_of(self.session.output, len(plan), self.done):
            in_time = await self._send(slice(0, plan.late_from))
            first = self._first_instant
            late, offset = Measured.of(0), 0.0
            if plan.late:
                assert self.close is not None
                self._done, self._pool = plan.late_from, None
                await asyncio.sleep(await asyncio.to_thread(self.close))
                late = await self._send(slice(plan.late_from, len(plan)))
                offset = self._first_instant - first
        return outcome_of(plan, in_time, late, offset)

    async def _send(self, part: slice) -> Measured:
        plan, manner, resolver = self.plan, self.manner, self.session.resolver
        at = plan.at[part]
        work = Work(
            lambda index: self.request(part.start + index), plan.viewer[part], at, reopenings(plan.seed, manner, at)
        )
        self._pool = Pool(
            resolver.url(),
            work,
            connections=manner.connections,
            timeout=resolver.timeout(),
            repeats=self.subject.repeats,
            pauses_all=manner.is_production,
        )
        self._first_instant = clock.elapsed()
        return await self._pool.run()

    def done(self) -> tuple[int, str]:
        """Return the number of requests that have ended, and that number in words for the progress bar."""
        count = self._done + (self._pool.finished if self._pool else 0)
        return count, f"{count:,} of {len(self.plan):,}"


def reopenings(seed: int, manner: Manner, at: Sequence[float]) -> list[tuple[float, float]]:
    """Return when connections are closed and opened again, and which, as a share of the pool."""
    if not manner.churn or not at:
        return []
    random, per_second = Random(seed), manner.churn * manner.connections
    return [((number + 1) / per_second, random.random()) for number in range(int(at[-1] * per_second))]


def loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """Return the factory of the fastest event loop: uvloop's, which does not exist on Windows, or asyncio's."""
    try:
        import uvloop
    except ImportError:
        return None
    return uvloop.new_event_loop
