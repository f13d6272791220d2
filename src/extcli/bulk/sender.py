"""Sends the lines of a file, in parallel but in order for each user. Repeats lines where that is harmless."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from extcli import bounded_json, clock
from extcli.api.call import Call
from extcli.api.failures import NotConnected
from extcli.api.http import PROBE, Response, bounded, client_options, headers, httpx, probe_id, translate_errors
from extcli.api.masking import shown_url
from extcli.api.retry import RATE_LIMITED, Deadline, asks_to_wait, is_asked_for, pause, until_done
from extcli.api.signed_calls import error_of, is_expired
from extcli.api.tokens import opaque_id
from extcli.bulk.input_lines import Batches, Line, ReaderThread
from extcli.bulk.operations import Operation, votes_add_up
from extcli.bulk.report import Report
from extcli.config import settings
from extcli.errors import CliError, ErrorResponse, UnexpectedResponse, UsageError, Withheld, reason_of

if TYPE_CHECKING:
    from extcli.api.dry_run import DryRun
    from extcli.api.http import Response
    from extcli.api.token_sources import Credentials
    from extcli.session import Session


@dataclass(slots=True)
class Job:
    """A line ready to send."""

    line: Line
    call: Call
    authorization: str


class Connection:
    """One connection, for one request at a time. Connects on first use, and reconnects after the service closes it.

    Each has its own httpx client. In a shared client every request searches all connections at each step, which costs
    more than the request itself.
    """

    def __init__(self, url: str, timeout: float, *, trace: Callable[[str], None] | None = None) -> None:
        self._url = url
        self._trace = trace
        self._client = httpx.AsyncClient(limits=httpx.Limits(max_connections=1), **client_options(url, timeout))

    async def send(self, job: Job, *, is_probe: bool = False) -> Response:
        """Send the request and return the response, whatever its status. Raises `Unreachable`."""
        call = job.call
        fields = headers(call.body, job.authorization)
        if is_probe:
            fields["x-request-id"] = probe_id()
        with translate_errors(self._url):
            request = self._client.build_request(
                call.method,
                self._url + call.path,
                params=call.query,
                content=call.body,
                headers=fields,
            )
            if self._trace is None:
                return await self._send_and_read(request)
            return await self._send_traced(request, job, self._trace)

    async def _send_traced(self, request: httpx.Request, job: Job, trace: Callable[[str], None]) -> Response:
        """Send the request and trace it. Each trace names its line, because connections write concurrently."""
        number = job.line.number
        trace(f"> line {number}: {request.method} {shown_url(str(request.url))}")
        trace(f"> line {number}: authorization: {job.authorization.split(' ')[0]} ***")
        trace(f"> line {number}: {len(request.content)} bytes")
        started = clock.elapsed()
        response = await self._send_and_read(request)
        milliseconds = (clock.elapsed() - started) * 1000
        trace(f"< line {number}: {response.status_code} {response.reason_phrase}, {milliseconds:.1f} ms")
        return response

    async def _send_and_read(self, request: httpx.Request) -> Response:
        response = await self._client.send(request, stream=True)
        try:
            response = bounded(response, self._url, limit=PROBE)
            await response.aread()
        finally:
            await response.aclose()
        return response

    async def close(self) -> None:
        """Close the connection."""
        await self._client.aclose()


_SLOWING_DOWN = "the service limits the rate; slowing down"
_RETRYING = "the service is unavailable; retrying"


class RetryPolicy:
    """Decides on retries: until `seconds` have passed without a success."""

    def __init__(self, seconds: float, operation: Operation, report: Report) -> None:
        self._deadline = Deadline(seconds)
        self._operation = operation
        self._report = report
        self._may_repeat: bool | None = None if operation.definition else bool(operation.repeatable)

    @property
    def repeatable(self) -> str:
        """The reason why repeating lines is harmless; empty if it is not, or not known to be."""
        return "" if self._may_repeat is False else self._operation.repeatable

    def reset(self) -> None:
        """Record a success."""
        self._deadline.reset()

    async def pause_after(self, response: Response, connection: Connection, job: Job, attempts: int) -> float | None:
        """Return the seconds to wait before a retry, or `None` for no retry. `attempts` counts the earlier retries.

        429 means that the request was not applied. After 503 it may have been, so only harmless requests are repeated.
        """
        seconds = self._pause(response, attempts)
        if seconds is None:
            return None
        if response.status_code == RATE_LIMITED:
            self._report.report_once(_SLOWING_DOWN)
            return seconds
        if self._may_repeat is False:
            return None
        self._report.report_once(_RETRYING)
        return seconds if await self._is_repeatable(connection, job) else None

    async def _is_repeatable(self, connection: Connection, job: Job) -> bool:
        """Return whether repeating is harmless, from the definition of the poll if necessary."""
        definition, attempts = self._operation.definition, 0
        while self._may_repeat is None and definition is not None:
            response = await connection.send(replace(job, call=definition), is_probe=True)
            seconds = self._pause(response, attempts)
            if seconds is not None:
                attempts += 1
                await asyncio.sleep(seconds)
            elif response.status_code >= 500 or response.status_code == RATE_LIMITED:
                return False
            else:
                self._may_repeat = not votes_add_up(response.status_code, response.content)
        return bool(self._may_repeat)

    def _pause(self, response: Response, attempts: int) -> float | None:
        """Return the seconds that a response asks to wait; `None` if it asks for none, or if no time is left."""
        header = response.headers.get("retry-after")
        if not asks_to_wait(response.status_code, header):
            return None
        seconds = pause(header, attempts)
        return seconds if self._deadline.allows(seconds) else None


_QUEUE_SIZE = 4
"""Lists of jobs that may wait for each connection."""


def send(
    session: Session,
    batches: Batches,
    operation: Operation,
    *,
    acts_as: str,
    concurrency: int,
    then: Callable[[], None] = lambda: None,
) -> None:
    """Send every line, report the outcome, and call `then`. Raises `LinesRefused`, or the error that ended the run."""
    if batches.name_users:
        _check_identity(session)
    run = Run(session, batches, operation, session.credentials(acts_as))
    if session.dry_run:
        run.show_all(session.dry_run)
        raise Withheld
    report = run.report
    try:
        asyncio.run(run.send_all(concurrency))
    except (KeyboardInterrupt, CliError) as error:
        ending = "stopped" if isinstance(error, CliError) else "interrupted"
        report.finish(ending, repeatable=run.retry.repeatable)
        raise
    finally:
        batches.input.close()
    report.finish()
    then()
    report.raise_if_refused()


def _check_identity(session: Session) -> None:
    """Raise `UsageError` if the chosen identity names a user, since the lines name users as well."""
    chosen = session.resolver.find(settings.ACTS_AS)
    if chosen is None:
        return
    identity = chosen.value
    if identity.role == "broadcaster":
        raise UsageError(
            f"{identity} ({chosen.label}) cannot send lines that name their users",
            why="a broadcaster is one user, the owner of the channel",
            fix="use --as viewer",
        )
    if identity.user:
        raise UsageError(
            f"{identity} ({chosen.label}) names a user, but so does each line",
            why="each line is sent as the user it names",
            fix=f"use --as {identity.role}",
        )


class Run:
    """One run over the input."""

    def __init__(self, session: Session, batches: Batches, operation: Operation, credentials: Credentials) -> None:
        self._session = session
        self._batches = batches
        self._operation = operation
        self._credentials = credentials
        self._client_id = session.resolver.client_id()
        self.report = Report(session.output, batches.input)
        self.retry = RetryPolicy(session.resolver.timeout(), operation, self.report)

    def show_all(self, dry_run: DryRun) -> None:
        """Print the request of every line, and name the invalid lines."""
        for batch in self._batches:
            for line in batch:
                try:
                    call = self._call_of(line)
                except UsageError as error:
                    self._session.output.report(f"line {line.number}: {error.what}")
                else:
                    dry_run.show(self._session.resolver.url(), call, call.query, self._credentials, user=line.user)

    async def send_all(self, concurrency: int) -> None:
        """Send every line. Raises the first error that is not about a single line."""
        resolver = self._session.resolver
        # `None` without --verbose, so that no trace is even formatted.
        trace = self._session.output.trace if resolver.flags.verbose else None
        connections = [Connection(resolver.url(), resolver.timeout(), trace=trace) for _ in range(concurrency)]
        queues: list[asyncio.Queue[list[Job] | None]] = [asyncio.Queue(_QUEUE_SIZE) for _ in connections]
        try:
            async with self.report.shown(), asyncio.TaskGroup() as tasks:
                tasks.create_task(self._distribute_lines(queues))
                for connection, queue in zip(connections, queues, strict=True):
                    tasks.create_task(self._send_from_queue(connection, queue))
        except BaseExceptionGroup as errors:  # not `except*`: on Python 3.11.2 the error raised there is lost
            # A broken pipe of the refusals ends this command quietly, like any other.
            matching, others = errors.split((CliError, BrokenPipeError))
            raise (others or _first_error(matching)) from None
        finally:
            for connection in connections:
                await connection.close()

    async def _distribute_lines(self, queues: list[asyncio.Queue[list[Job] | None]]) -> None:
        """Give all lines of a user to the same connection, so that they arrive in order. `7` and `U7` are one user."""
        reader = ReaderThread(self._prepare_jobs())
        upcoming = reader.next_item()
        try:
            while (batch := await upcoming) is not None:
                upcoming = reader.next_item()
                jobs, invalid = batch
                for number, fault in invalid:
                    self.report.refuse(number, None, fault)
                self.report.resume_point.add(job.line.number for job in jobs)
                shares: dict[int, list[Job]] = {}
                for job in jobs:
                    shares.setdefault(hash(opaque_id(job.line.user or "")) % len(queues), []).append(job)
                for index, share in shares.items():
                    await queues[index].put(share)
            for queue in queues:
                await queue.put(None)
        finally:
            if not upcoming.cancel() and not upcoming.cancelled():
                upcoming.exception()  # retrieved, or asyncio logs it
            reader.close()

    def _prepare_jobs(self) -> Iterator[tuple[list[Job], list[tuple[int, str]]]]:
        """Yield jobs in batches, and the invalid lines by number with the reason. Runs in the reader thread."""
        for batch in self._batches:
            ready: list[tuple[Line, Call]] = []
            invalid: list[tuple[int, str]] = []
            for line in batch:
                try:
                    ready.append((line, self._call_of(line)))
                except UsageError as error:
                    invalid.append((line.number, error.what))
            authorizations = self._authorizations([line.user for line, _ in ready])
            yield [Job(line, call, authorizations[line.user]) for line, call in ready], invalid

    def _call_of(self, line: Line) -> Call:
        """Return the request of a line. Raises `UsageError` if it is invalid."""
        if line.fault or line.user == "":
            raise UsageError(line.fault or "the user is empty")
        try:
            (line.user or "").encode()
            return self._operation.call_of(line)
        except UnicodeEncodeError:
            raise UsageError("not UTF-8 text") from None

    def _authorizations(self, users: list[str | None]) -> dict[str | None, str]:
        named = list(dict.fromkeys(user for user in users if user is not None))
        found: dict[str | None, str] = (
            dict(zip(named, self._credentials.tokens_for(named), strict=True)) if named else {}
        )
        if None in users:
            found[None] = until_done(self._credentials.token, self._session.resolver.timeout(), is_asked_for)
        return {user: f"{self._client_id} {token}" for user, token in found.items()}

    async def _send_from_queue(self, connection: Connection, queue: asyncio.Queue[list[Job] | None]) -> None:
        while (jobs := await queue.get()) is not None:
            for job in jobs:
                await self._deliver(connection, job)

    async def _deliver(self, connection: Connection, job: Job) -> None:
        number = job.line.number
        response = await self._send(connection, job)
        if is_expired(response) and await asyncio.to_thread(self._credentials.renew):
            job.authorization = (await asyncio.to_thread(self._authorizations, [job.line.user]))[job.line.user]
            response = await self._send(connection, job)
        status = response.status_code
        if status < 300:
            if not _is_json_object(response.content):
                raise UnexpectedResponse(response)
            self.retry.reset()
            self.report.accept(number)
        elif (
            status in (401, 403, 404, 405, RATE_LIMITED)
            or status >= 500
            or status < 400
            or _ABOUT_ALL.search(reason_of(response.content))
        ):
            raise _stop(job, response, self._credentials)
        else:
            self.report.refuse(number, status, reason_of(response.content))

    async def _send(self, connection: Connection, job: Job) -> Response:
        """Send the request of a line, with retries, and return the response."""
        resume_point, number = self.report.resume_point, job.line.number
        attempts = 0
        while True:
            resume_point.mark_sent(number)
            try:
                response = await connection.send(job)
            except NotConnected:
                resume_point.mark_not_applied(number)
                raise
            if 300 <= response.status_code < 500:
                resume_point.mark_not_applied(number)
            pause = await self.retry.pause_after(response, connection, job, attempts)
            if pause is None:
                return response
            await asyncio.sleep(pause)
            attempts += 1


def _is_json_object(body: bytes) -> bool:
    """Return whether a successful response is a JSON object, as every write of the service returns.

    A proxy's login page is not.
    """
    try:
        return isinstance(bounded_json.decoded(body), dict)
    except ValueError:
        return False


_ABOUT_ALL = re.compile(r"(^|: )(id: |poll is closed\b)")
"""In a refusal about the poll, ranking or buffer, which all lines share: its id, or that it is closed."""


def _stop(job: Job, response: Response, credentials: Credentials) -> ErrorResponse:
    """Return the error for a response that would be the same for every line, and so ends the run."""
    error = error_of(job.call, response, credentials)
    error.what = f"line {job.line.number}: {error.what}"
    if response.status_code >= 500:
        error.fix = "send the remaining lines when the service works again"
    return error


def _first_error(errors: BaseExceptionGroup[Any] | None) -> BaseException:
    found: BaseException | None = errors
    while isinstance(found, BaseExceptionGroup):
        found = found.exceptions[0]
    assert found is not None
    return found
