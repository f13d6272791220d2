"""Runs a simulation: predicts the result, sends the requests at their instants, and compares.

It is an open model: a request that is due is sent, or waits for a free connection, no matter how slow earlier answers
are, and its latency counts from the planned instant. Requests of one viewer wait for each other, because the last one
counts.
"""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from itertools import pairwise

from extcli import clock
from extcli.api.call import Call, asks_to_retry, pause, retry, retry_after
from extcli.api.http import client_options, headers, httpx, url_of
from extcli.api.tokens import Credentials, SelfSigned
from extcli.bulk.connections import ONE_CONNECTION, ConnectionPool, PerUserQueue, raise_first_error
from extcli.bulk.sender import check_identity
from extcli.errors import RequestWithheld, UsageError, reason_of
from extcli.output.sanitize import visible
from extcli.output.terminal import progress_bar
from extcli.session import VIEWER, Session
from extcli.simulate.outcome import NO_RESPONSE, NOT_SENT, RequestOutcomes, late_vote_faults, run_facts
from extcli.simulate.plan import Plan
from extcli.simulate.result import Options, report_result
from extcli.simulate.subjects import Buffer, Poll, Subject

_VIEWER_RATE = 50
"""Requests per second of one viewer in production, half of what the service allows by default."""
_RECONNECT_SECONDS = 0.1
"""Seconds until a connection is tried again."""
_MAX_RESPONSE = 1 << 20
"""Bytes of a response. Those are short, and there are many at a time."""


@dataclass(eq=False, repr=False)
class PlanRun:
    """One run of a plan: first the requests before the poll closes, then the late ones."""

    url: str
    plan: Plan
    make_request: Callable[[int], httpx.Request]
    """Makes the request with an index of the plan."""
    options: Options
    """In production, a refusal that names a time lets every request wait, not only those of the refused viewer."""
    timeout: float
    """Seconds to wait for a response, and for a refusing service to accept a request at last."""
    repeated_statuses: frozenset[int] = frozenset()
    """The statuses after which a request is sent again, if the response has `Retry-After`."""
    close_poll: Callable[[], float] | None = None
    """Ends the poll before the late requests, and returns the seconds to wait after it."""
    after_request: Callable[[int], Awaitable[None]] | None = None
    """Called after the request with this index, before the next one of its viewer."""
    on_progress: Callable[[int], None] = lambda _: None
    """Called with the number of requests that have ended."""
    finished: int = 0
    started: float = 0.0
    """When the run began, in seconds of `clock.elapsed`."""

    def __post_init__(self) -> None:
        self.outcomes = RequestOutcomes(len(self.plan))
        settings = client_options(self.url, self.timeout)
        transport = {"verify": settings["verify"], "trust_env": False, "limits": ONE_CONNECTION}
        self._extensions = {"timeout": settings["timeout"].as_dict() | {"pool": None}}
        count = min(self.options.connections, len(self.plan))
        self._connections = ConnectionPool(lambda: httpx.AsyncHTTPTransport(**transport), count, in_turn=True)
        self._reopenings = reopenings_before(self.options, self.plan.instants)
        self._paused_until = 0.0
        self._away_since: float | None = None

    async def run(self) -> None:
        """Send all requests, and wait for their responses."""
        plan = self.plan
        self.started = clock.elapsed()
        try:
            with raise_first_error():
                await self._send(range(plan.late_from))
                if self.close_poll:
                    await asyncio.sleep(await asyncio.to_thread(self.close_poll))
                    await self._send(range(plan.late_from, len(plan)))
        finally:
            await self._connections.close()

    def _now(self) -> float:
        """Return the seconds since the start."""
        return clock.elapsed() - self.started

    async def _send(self, part: range) -> None:
        """Send a part of the requests, at their instants from now on."""
        plan, outcomes, start = self.plan, self.outcomes, self._now()
        async with asyncio.TaskGroup() as group:
            in_order = PerUserQueue(group, self._deliver)
            for index in part:
                due = outcomes.due[index] = start + plan.instants[index]
                if (left := due - self._now()) > 0:
                    await asyncio.sleep(left)
                outcomes.lag = max(outcomes.lag, self._now() - due)
                in_order.add(plan.senders[index], index)

    async def _deliver(self, index: int) -> None:
        """Send a request, and again as the service asks, until its outcome is final."""
        outcomes, reopens = self.outcomes, self._reopenings[index] > 0
        outcomes.reopened += reopens
        while True:
            async with self._connections.acquire(reopens=reopens) as transport:
                reopens = False
                if (left := self._paused_until - self._now()) > 0:
                    await asyncio.sleep(left)
                sent = self._now()
                status, after, body = await self._exchange(transport, index)
            now = self._now()
            if status == NOT_SENT:
                self._away_since = sent if self._away_since is None else self._away_since
                if now - self._away_since < self.timeout:
                    continue
                break
            self._away_since = None
            outcomes.sent[index] = outcomes.sent[index] or sent
            outcomes.sent_count += 1
            wait = pause(after) if status in self.repeated_statuses and retry_after(after) is not None else None
            if wait is None or now + wait >= outcomes.sent[index] + self.timeout:
                break
            outcomes.repeat_times.append(now)
            if self.options.is_production:
                self._paused_until = max(self._paused_until, now + wait)
            await asyncio.sleep(wait)
        outcomes.status[index], outcomes.done[index] = status, now
        if status >= 300:
            outcomes.reasons[index] = reason_of(body)
        self.finished += 1
        self.on_progress(self.finished)
        if self.after_request:
            await self.after_request(index)

    async def _exchange(self, transport: httpx.AsyncHTTPTransport, index: int) -> tuple[int, str | None, bytes]:
        """Send a request once. Return its status, `Retry-After`, and the body of the response."""
        request = self.make_request(index)
        request.extensions = self._extensions
        status, after, body = NO_RESPONSE, None, bytearray()
        try:
            response = await transport.handle_async_request(request)
            status, after = response.status_code, response.headers.get("retry-after")
            async with aclosing(response):
                async for piece in response.aiter_bytes():
                    body += piece
                    if len(body) > _MAX_RESPONSE:
                        raise httpx.ReadError("the response is too large")
        except (httpx.ConnectError, httpx.ConnectTimeout):
            await asyncio.sleep(_RECONNECT_SECONDS)
            return NOT_SENT, None, b""
        except httpx.HTTPError:  # a refusal is one even if its body never ends
            return status if status >= 300 else NO_RESPONSE, after, b""
        return status, after, bytes(body)


def reopenings_before(options: Options, instants: Sequence[float]) -> list[int]:
    """Return how many connections are closed and opened again before each request."""
    per_second = options.churn * options.connections
    totals = [int(at * per_second) for at in instants]
    return [now - before for before, now in pairwise([0, *totals])]


def simulate(subject: Subject, plan: Plan, options: Options) -> None:
    """Run a plan and print its outcome. Raises an error if the result differs from the plan or from `--expect`."""
    session = subject.session
    check_identity(session)
    output, url, timeout = session.output, session.resolver.url(), session.resolver.timeout()
    credentials = session.credentials(VIEWER)
    credentials.tokens_for([])  # raises an error if there is only one token
    if options.is_production:
        _check_pace(plan)
    before = subject.read_counts()
    if before and not options.adds:
        raise UsageError(
            f"{subject.what} {visible(subject.name)} has {subject.requests} already: {sum(before.values()):,}",
            fix=f"use another id, delete its {subject.requests}, or compare only the increase with --add",
        )
    close_poll = subject.poll_closer(has_late_votes=bool(plan.late)) if isinstance(subject, Poll) else None
    will = _expected_result(subject, plan)
    for line in (will, *plan.notes):
        output.report(line)
    users = plan.users
    if session.dry_run:
        for index, viewer in enumerate(plan.senders):
            call = subject.call(plan, index)
            session.dry_run.show(url, call, credentials, user=users[viewer])
        raise RequestWithheld
    extend_token_lifetime(credentials, plan)
    tokens = credentials.tokens_for(users)
    if options.adds and subject.has_crowd_of_seed(plan.seed, tokens[0]):
        raise UsageError(
            f"{subject.what} {visible(subject.name)} already has {subject.requests} of viewers of seed {plan.seed}",
            why="--add needs viewers who have not taken part yet",
            fix="use another --seed",
        )
    make_request = request_maker(session, plan, tokens, lambda index: subject.call(plan, index))
    plan_run = PlanRun(url, plan, make_request, options, timeout, subject.repeated_statuses, close_poll)
    run_with_progress(session, plan_run.run(), plan_run, subject.requests)
    outcomes = plan_run.outcomes
    comparison = retry(
        lambda: subject.compare(plan, outcomes.status, before, late_vote_faults(plan, outcomes)),
        timeout,
        asks_to_retry,  # the crowd itself may have used up the rate of its client id
    )
    about = {"simulation": subject.verb, "what": subject.what, "id": subject.name, "requests": subject.requests}
    numbers = {"seed": plan.seed, "viewers": plan.viewers, "will": will, "notes": plan.notes}
    report_result(session, options, about | numbers, comparison, run_facts(plan, outcomes))


def _expected_result(subject: Subject, plan: Plan) -> str:
    """Return the predicted result in words."""
    if isinstance(subject, Buffer):
        return f"expected: {len(plan):,} entries of {plan.viewers:,} viewers, each in the buffer once"
    chosen, total = list(zip(plan.choices, plan.expected, strict=True)), sum(plan.expected)
    (choice, count), *others = chosen
    votes = [f"{count:,} {subject.requests} for {visible(choice)}"]
    votes += [f"{count:,} for {visible(choice)}" for choice, count in others]
    parts = [", ".join(votes), f"{total:,} {subject.total}"]
    if isinstance(subject, Poll) and total:
        parts[1] += f", mean {sum(int(choice) * count for choice, count in chosen) / total:.6g}"
    if plan.late_from > total:
        parts.append(f"{plan.late_from:,} {subject.requests} are sent")
    if plan.late:
        parts.append(f"{plan.late:,} late {subject.requests} are refused")
    return f"expected: {'; '.join(parts)}"


def _check_pace(plan: Plan) -> None:
    """Raise `UsageError` if a viewer would exceed the rate that production allows a caller."""
    average = plan.late_from / plan.viewers / plan.duration if plan.duration else 0.0
    if average > _VIEWER_RATE:
        raise UsageError(
            f"each viewer would send {average:,.0f} requests per second",
            why=f"in production, a simulated viewer may send {_VIEWER_RATE}, half of the service's default limit",
            fix="use more viewers or a lower --rate",
        )


def extend_token_lifetime(credentials: Credentials, plan: Plan) -> None:
    """Let tokens that are made from now on stay valid during the run."""
    if isinstance(credentials, SelfSigned):
        credentials.renew()
        credentials.lifetime += round(plan.duration * 2000)


def request_maker(
    session: Session, plan: Plan, tokens: Sequence[str], call: Callable[[int], Call]
) -> Callable[[int], httpx.Request]:
    """Return the function that makes a request of a plan by its index. All go to one address."""
    client_id, first = session.resolver.client_id(), call(0)
    url = httpx.URL(url_of(session.resolver.url() + first.path, first.query))

    def request(index: int) -> httpx.Request:
        body = call(index).body
        assert isinstance(body, bytes)
        fields = headers(body, f"{client_id} {tokens[plan.senders[index]]}")
        return httpx.Request(first.method, url, headers=fields, content=body)

    return request


def run_with_progress(session: Session, main: Coroutine[None, None, None], plan_run: PlanRun, what: str) -> None:
    """Run a simulation with a progress bar. If it is interrupted, report how many of `what` were sent."""
    total = len(plan_run.plan)
    gc.collect()
    gc.freeze()  # a collection of everything would be a pause of up to 100 ms
    try:
        with progress_bar(total, quiet=session.output.quiet) as plan_run.on_progress:
            asyncio.run(main)
    except KeyboardInterrupt:
        done = f"{plan_run.finished:,} of {total:,} {what}"
        session.output.report(f"interrupted after {done}; the result is not compared")
        raise
