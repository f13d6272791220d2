"""Sends the lines of a file, in parallel but in order for each user. Repeats lines where that is harmless."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import aclosing
from functools import partial
from itertools import chain

from extcli import bounded_json, clock
from extcli.api.call import RATE_LIMITED, Deadline, asks_to_retry, asks_to_wait, error_of, is_expired, pause, retry
from extcli.api.client import Service
from extcli.api.dry_run import DryRun
from extcli.api.http import PROBE, NotConnected, Response, bounded, client_options, headers, httpx, translate_errors
from extcli.api.masking import shown_url
from extcli.api.tokens import Credentials, GivenToken, opaque_id
from extcli.bulk.connections import ONE_CONNECTION, ConnectionPool, PerUserQueue, raise_first_error
from extcli.bulk.input_lines import InputLines, Line, Operation, in_daemon_thread
from extcli.bulk.report import RunReport
from extcli.config import settings
from extcli.errors import CliError, Refused, RequestWithheld, UnexpectedResponse, UsageError, reason_of
from extcli.output.terminal import progress_bar
from extcli.session import Session

_LINES_AHEAD = 100
"""Lines that may wait for each connection."""
_CONCERNS_ALL_LINES = re.compile(r"(^|: )(id: |poll is closed\b)")
"""In a refusal about the poll, ranking or buffer, which all lines share: its id, or that it is closed."""


def votes_add_up(service: Service, poll: str) -> bool:
    """Return whether votes of a user add up in a poll; true if the service does not say. Raises `CliError`."""
    try:
        definition = service.probing().get("vote_config", id=poll)
    except Refused as error:
        if error.status == RATE_LIMITED:
            raise
        return error.status != 404
    return bool(bounded_json.members(definition.content).get("totalVotesPerUser") != 1)


def send(
    session: Session,
    source: InputLines,
    operation: Operation,
    *,
    acts_as: str,
    concurrency: int,
    then: Callable[[], None] = lambda: None,
) -> None:
    """Send every line, report the outcome, and call `then`. Raises `LinesRefused`, or the error that ended the run."""
    if source.name_users:
        check_identity(session)
    run = BulkRun(session, source, operation, session.credentials(acts_as))
    if session.dry_run:
        run.show_all(session.dry_run)
        raise RequestWithheld
    report = run.report
    try:
        with progress_bar(source.count_lines(), quiet=session.output.quiet) as report.on_progress:
            asyncio.run(run.send_all(concurrency))
    except (KeyboardInterrupt, CliError) as error:
        repeatable = "" if run.may_repeat is False else operation.repeatable
        report.finish("stopped" if isinstance(error, CliError) else "interrupted", repeatable=repeatable)
        raise
    finally:
        source.close()
    report.finish()
    then()
    report.raise_if_refused()


def check_identity(session: Session) -> None:
    """Raise `UsageError` if the chosen identity names a user, although the requests are of many users."""
    chosen = session.resolver.find(settings.ACTS_AS)
    if chosen and (chosen.value.role == "broadcaster" or chosen.value.user):
        raise UsageError(
            f"{chosen.value} ({chosen.label}) cannot act for many users",
            why="each line is sent as another user, and a broadcaster is always the owner of the channel",
            fix="use --as viewer",
        )


class BulkRun:
    """One run over the input."""

    def __init__(self, session: Session, source: InputLines, operation: Operation, credentials: Credentials) -> None:
        self._session = session
        self._url = session.resolver.url()
        self._timeout = session.resolver.timeout()
        # `None` without --verbose, so that no trace is even formatted.
        self._trace = session.output.trace if session.resolver.flags.verbose else None
        self._source = source
        self._operation = operation
        self._credentials = credentials
        self._client_id = session.resolver.client_id()
        self._deadline = Deadline(self._timeout)
        self.may_repeat = None if operation.poll else bool(operation.repeatable)
        """Whether repeating lines is harmless; `None` if that is not known yet."""
        self._connections: ConnectionPool[httpx.AsyncClient]
        self.report = RunReport(session.output)

    def show_all(self, dry_run: DryRun) -> None:
        """Print the request of every line, and name the invalid lines."""
        for line in chain.from_iterable(self._source):
            self._prepare_line(line)
            if line.fault:
                self.report.output.report(f"line {line.number}: {line.fault}")
            else:
                dry_run.show(self._url, line.call, self._credentials, user=line.user or None)

    async def send_all(self, concurrency: int) -> None:
        """Send every line. Raises the first error that is not about a single line."""
        options = client_options(self._url, self._timeout) | {"limits": ONE_CONNECTION}
        self._connections = ConnectionPool(lambda: httpx.AsyncClient(**options), concurrency)
        space = asyncio.Semaphore(_LINES_AHEAD * concurrency)

        async def deliver(line: Line) -> None:
            await self._deliver(line)
            space.release()

        try:
            with raise_first_error():
                async with asyncio.TaskGroup() as tasks:
                    in_order, batches = PerUserQueue(tasks, deliver), self._prepared_batches()
                    while batch := await in_daemon_thread(lambda: next(batches, None)):
                        self.report.add_lines([line.number for line in batch])
                        for line in batch:
                            await space.acquire()
                            # `7` and `U7` are one user; lines without a user are of one.
                            in_order.add(opaque_id(line.user), line)
        finally:
            await self._connections.close()

    def _prepared_batches(self) -> Iterator[list[Line]]:
        """Yield the lines with their requests and tokens. Runs in another thread."""
        for batch in self._source:
            for line in batch:
                self._prepare_line(line)
            self._assign_tokens([line for line in batch if not line.fault])
            yield batch

    def _prepare_line(self, line: Line) -> None:
        """Make the request of a line, or note why it is invalid."""
        if self._source.name_users and not line.user and not line.fault:
            line.fault = "the user is empty"
        if not line.fault:
            try:
                line.user.encode()
                line.call = self._operation.make_call(line)
            except UnicodeEncodeError:
                line.fault = "not UTF-8 text"
            except UsageError as error:
                line.fault = error.what

    def _assign_tokens(self, lines: Sequence[Line]) -> None:
        """Give each line a token of its user."""
        users = list(dict.fromkeys(line.user for line in lines))
        if self._source.name_users and users:
            tokens = self._credentials.tokens_for(users)
        else:
            tokens = [retry(self._credentials.token, self._timeout, asks_to_retry) for _ in users]
        by_user = dict(zip(users, tokens, strict=True))
        for line in lines:
            line.token = by_user[line.user]

    async def _deliver(self, line: Line) -> None:
        number = line.number
        if line.fault:
            self.report.refuse(number, None, line.fault)
            return
        response = await self._send(line)
        if is_expired(response) and await asyncio.to_thread(self._credentials.renew):
            await asyncio.to_thread(self._assign_tokens, [line])
            response = await self._send(line)
        status = response.status_code
        if status < 300:
            if not isinstance(bounded_json.decoded_or_text(response.content), dict):  # the login page of a proxy
                raise UnexpectedResponse(response)
            self._deadline.reset()
            self.report.accept(number)
            return
        is_about_line = 400 <= status < 500 and status not in (401, 403, 404, 405, RATE_LIMITED)
        if is_about_line and not _CONCERNS_ALL_LINES.search(reason_of(response.content)):
            self.report.refuse(number, status, reason_of(response.content))
            return
        error = error_of(line.call, response, self._credentials.advice)
        error.what = f"line {number}: {error.what}"
        if status >= 500:
            error.fix = "send the remaining lines when the service works again"
        raise error

    async def _send(self, line: Line) -> Response:
        """Send the request of a line, with retries, and return the response.

        Retries end with `--timeout` after the first refusal since the latest success.
        429 means that the request was not applied. After 503 it may have been, so only harmless requests are repeated.
        """
        attempts = 0
        while True:
            try:
                response = await self._request(line)
            except NotConnected:
                self.report.mark_not_applied(line.number)
                raise
            status, after = response.status_code, response.headers.get("retry-after")
            if 300 <= status < 500:
                self.report.mark_not_applied(line.number)
            if not asks_to_wait(status, after):
                return response
            seconds = pause(after, attempts)
            if not self._deadline.allows(seconds):
                return response
            if status == RATE_LIMITED:
                self.report.report_once("the service limits the rate; slowing down")
            elif not await self._may_send_again(line):
                return response
            await asyncio.sleep(seconds)
            attempts += 1

    async def _may_send_again(self, line: Line) -> bool:
        """Return whether a line may be sent again that the service may have applied. If so, report that it will be."""
        if self.may_repeat is not False:
            self.report.report_once("the service is unavailable; retrying")
        if self.may_repeat is None and self._operation.poll:
            service = self._session.service_with(GivenToken(line.token))
            adds_up = partial(votes_add_up, service, self._operation.poll)
            try:
                self.may_repeat = not await asyncio.to_thread(retry, adds_up, self._timeout, asks_to_retry)
            except CliError:
                return False
        return bool(self.may_repeat)

    async def _request(self, line: Line) -> Response:
        """Send one request and return the response, whatever its status. Raises `Unreachable`."""
        call = line.call
        fields = headers(call.body, f"{self._client_id} {line.token}")
        with translate_errors(self._url):
            async with self._connections.acquire() as client:
                request = client.build_request(
                    call.method, self._url + call.path, params=call.query, content=call.body, headers=fields
                )
                started = clock.elapsed()
                self.report.mark_sent(line.number)
                if self._trace:  # each line names its line, because connections write concurrently
                    size = f"authorization: {self._client_id} ***, {len(request.content)} bytes"
                    self._trace(f"> line {line.number}: {call.method} {shown_url(str(request.url))}, {size}")
                async with aclosing(await client.send(request, stream=True)) as unbounded:
                    response = bounded(unbounded, self._url, limit=PROBE)
                    await response.aread()
                if self._trace:
                    took = f"{response.reason_phrase}, {(clock.elapsed() - started) * 1000:.1f} ms"
                    self._trace(f"< line {line.number}: {response.status_code} {took}")
                return response
