"""Runs a plan against a service: prepares the requests, sends them, and returns what became of them."""

from __future__ import annotations

import asyncio
import gc
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from random import Random
from urllib.parse import quote, urlencode, urlsplit

from extcli import __version__, clock
from extcli.api.call import Call
from extcli.api.failures import not_connected
from extcli.api.http import certificates
from extcli.api.token_sources import Credentials
from extcli.config import settings
from extcli.errors import CliError, UsageError
from extcli.output.printer import Output
from extcli.output.progress import DELAY_SECONDS
from extcli.session import VIEWER, Session
from extcli.simulate.connection import Measured, Target, Work
from extcli.simulate.outcome import Outcome, outcome_of
from extcli.simulate.plan import Plan
from extcli.simulate.pool import Pool
from extcli.simulate.subjects import Subject

_REFRESH_SECONDS = 0.25
MARGIN = 0.2
"""Seconds after the end of a poll's window at which late votes begin."""


@dataclass(frozen=True, slots=True)
class Manner:
    """How requests are sent."""

    connections: int = 100
    churn: float = 0.0
    """The share of the connections that is closed and opened again per second."""
    is_production: bool = False


def viewer_credentials(session: Session) -> Credentials:
    """Return the credentials that make a token for each viewer. Raises `UsageError` if they cannot."""
    identity = session.resolver.identity(VIEWER)
    chosen = session.resolver.find(settings.ACTS_AS)
    if identity.role != "viewer" or (chosen and chosen.value.user):
        label = chosen.label if chosen else "the default"
        raise UsageError(
            f"a crowd cannot act as {identity} ({label})", fix="leave it out, or use the role viewer without a user"
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
    url: str, client_id: str, plan: Plan, tokens: Sequence[str], call: Callable[[int], Call]
) -> list[bytes]:
    """Return the bytes of each request. Equal requests are one object; `call` returns a request by its index."""
    parts = urlsplit(url)
    head = f"Host: {parts.netloc}\r\nUser-Agent: extcli/{__version__}\r\nAccept: application/json\r\n"
    found: list[bytes] = []
    of_user = [f"{head}Authorization: {client_id} {token}\r\n".encode() for token in tokens]
    made: dict[bytes, dict[int, bytes]] = {}
    for index, viewer in enumerate(plan.viewer):
        request = call(index)
        body = request.body if isinstance(request.body, bytes) else b""
        by_viewer = made.setdefault(body, {})
        complete = by_viewer.get(viewer)
        if complete is None:
            query = f"?{urlencode(request.query, quote_via=quote)}" if request.query else ""
            line = f"{request.method} {parts.path}{request.path}{query} HTTP/1.1\r\n".encode()
            length = b"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body)
            complete = by_viewer[viewer] = line + of_user[viewer] + length + body
        found.append(complete)
    return found


def target_of(url: str) -> Target:
    """Return where the requests to a URL go."""
    parts = urlsplit(url)
    is_secure = parts.scheme == "https"
    port = parts.port or (443 if is_secure else 80)
    return Target(parts.hostname or "", port, certificates() if is_secure else None)


def run(
    session: Session,
    subject: Subject,
    plan: Plan,
    requests: Sequence[bytes],
    manner: Manner,
    *,
    close: Callable[[], float] | None = None,
) -> Outcome:
    """Send a plan's requests. `close` ends the poll before the late ones, and returns the seconds to wait after it.

    Raises `Unreachable` if the service accepts no connection at the start.
    """
    sending = _Sending(session, subject, plan, requests, manner, close)
    gc.collect()
    gc.disable()  # a collection would be a pause of up to 100 ms
    try:
        with asyncio.Runner(loop_factory=loop_factory()) as runner:
            return runner.run(sending.run())
    except KeyboardInterrupt:
        done = f"{sending.finished:,} of {len(plan):,} {subject.requests}"
        session.output.report(f"interrupted after {done}; the result is not compared")
        raise
    finally:
        gc.enable()


class _Sending:
    """One run of a plan: the requests in time, and then the late ones."""

    def __init__(
        self,
        session: Session,
        subject: Subject,
        plan: Plan,
        requests: Sequence[bytes],
        manner: Manner,
        close: Callable[[], float] | None,
    ) -> None:
        self._session = session
        self._subject = subject
        self._plan = plan
        self._requests = requests
        self._manner = manner
        self._close = close
        self._done = 0
        self._pool: Pool | None = None

    async def run(self) -> Outcome:
        plan = self._plan
        async with progress(self._session.output, len(plan), lambda: self.finished):
            in_time = await self._send(slice(0, plan.late_from))
            first = self._first_instant
            late, offset = Measured.of(0), 0.0
            if plan.late:
                assert self._close is not None
                self._done, self._pool = plan.late_from, None
                await asyncio.sleep(await asyncio.to_thread(self._close))
                late = await self._send(slice(plan.late_from, len(plan)))
                offset = self._first_instant - first
        return outcome_of(plan, in_time, late, offset)

    async def _send(self, part: slice) -> Measured:
        plan, manner, resolver = self._plan, self._manner, self._session.resolver
        at = plan.at[part]
        work = Work(self._requests[part], plan.viewer[part], at, plan.viewers, reopenings(plan.seed, manner, at))
        pool = Pool(
            target_of(resolver.url()),
            work,
            connections=manner.connections,
            timeout=resolver.timeout(),
            repeats=self._subject.repeats,
            pauses_all=manner.is_production,
        )
        try:
            try:
                await pool.open(len(at))
            except (OSError, TimeoutError) as error:
                raise _not_connected(resolver.url(), error) from None
            self._first_instant, self._pool = clock.elapsed(), pool
            return await pool.run()
        finally:
            pool.close()

    @property
    def finished(self) -> int:
        """The number of requests that have ended."""
        return self._done + (self._pool.finished if self._pool else 0)


def reopenings(seed: int, manner: Manner, at: Sequence[float]) -> list[tuple[float, float]]:
    """Return when connections are closed and opened again, and which, as a share of the pool."""
    if not manner.churn or not at:
        return []
    random, per_second = Random(seed), manner.churn * manner.connections
    return [((number + 1) / per_second, random.random()) for number in range(int(at[-1] * per_second))]


def _not_connected(url: str, error: Exception) -> CliError:
    why = "no connection in time" if isinstance(error, TimeoutError) else (getattr(error, "strerror", "") or "")
    return not_connected(url, why.lower() or "the connection failed")


def loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """Return what makes the fastest event loop; uvloop does not exist on Windows."""
    try:
        import uvloop
    except ImportError:
        return None
    return uvloop.new_event_loop


@asynccontextmanager
async def progress(output: Output, total: int, finished: Callable[[], int]) -> AsyncIterator[None]:
    """Show a progress bar on a terminal, unless the run is short."""
    if not sys.stderr.isatty() or output.quiet:
        yield
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn

    columns = (BarColumn(), TextColumn("{task.completed:,.0f} of {task.total:,.0f}"))
    shown = Progress(*columns, console=Console(stderr=True), auto_refresh=False, transient=True)
    task = shown.add_task("", total=total)

    async def refresh() -> None:
        await asyncio.sleep(DELAY_SECONDS)
        shown.start()
        while True:
            shown.update(task, completed=finished(), refresh=True)
            await asyncio.sleep(_REFRESH_SECONDS)

    refreshing = asyncio.ensure_future(refresh())
    try:
        yield
    finally:
        refreshing.cancel()
        if shown.live.is_started:
            shown.stop()
