"""Many writes from one input: streamed, at most so many under way at once, each user's in the order of their lines."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from extcli.api.client import Call
from extcli.api.http import NotConnected
from extcli.bulk.connection import Connection
from extcli.bulk.input_lines import Batches, Line
from extcli.bulk.job import Job
from extcli.bulk.operations import Operation
from extcli.bulk.reader_thread import ReaderThread
from extcli.bulk.report import Report
from extcli.bulk.retry import RetryPolicy
from extcli.config import settings
from extcli.errors import CliError, ErrorAnswer, UnexpectedAnswer, UsageError, reason_of
from extcli.session import error_of

if TYPE_CHECKING:
    from extcli.api.credentials import Credentials
    from extcli.api.http import Answer
    from extcli.session import Session

_WAITING = 4
"""Lists of jobs that may wait for each lane."""


def send(session: Session, batches: Batches, writes: Operation, *, acts_as: str, concurrency: int) -> None:
    """Send every line, then say what became of them. Raises for lines refused, or when it had to stop."""
    if batches.name_users:
        _check_that_lines_may_name_users(session)
    report = Report(session.output, batches.input)
    retry = RetryPolicy(session.resolver.timeout(), writes, report)
    delivery = Delivery(session, batches, writes, session.credentials(acts_as), report, retry)
    try:
        asyncio.run(delivery.run(concurrency))
    except KeyboardInterrupt:
        report.finish("interrupted", again=retry.again)
        raise
    except CliError:
        report.finish("stopped", again=retry.again)
        raise
    finally:
        batches.input.close()
    report.finish()
    report.raise_if_refused()


def _check_that_lines_may_name_users(session: Session) -> None:
    """Raise `UsageError` for an identity that is of one user already: what it or the lines say would be ignored."""
    chosen = session.resolver.find(settings.ACTS_AS)
    if chosen is None:
        return
    identity = chosen.value
    if identity.role == "broadcaster":
        raise UsageError(
            f"{identity} ({chosen.label}) cannot send lines that name their users",
            why="a broadcaster is the owner of the channel, one user for all lines",
            fix="use --as viewer",
        )
    if identity.user:
        raise UsageError(
            f"{identity} ({chosen.label}) names a user, and so does each line",
            why="each line is sent as the user it names",
            fix=f"use --as {identity.role}",
        )


@dataclass(slots=True)
class Prepared:
    """A batch of the input: what can be sent, and which lines cannot, and why."""

    jobs: list[Job]
    unreadable: list[tuple[int, str]]


class Delivery:
    """Takes lines from the input to the service."""

    def __init__(
        self,
        session: Session,
        batches: Batches,
        writes: Operation,
        credentials: Credentials,
        report: Report,
        retry: RetryPolicy,
    ) -> None:
        self._batches = batches
        self._operation = writes
        self._credentials = credentials
        self._report = report
        self._retry = retry
        self._client_id = session.resolver.client_id()
        self._url = session.resolver.url()
        self._timeout = session.resolver.timeout()
        # Lanes without anybody to tell do not even put the words together.
        self._trace = session.output.trace if session.resolver.flags.verbose else None

    async def run(self, concurrency: int) -> None:
        """Everything, until the input ends. Raises the first error that is not about one line alone."""
        connections = [Connection(self._url, self._timeout, trace=self._trace) for _ in range(concurrency)]
        queues: list[asyncio.Queue[list[Job] | None]] = [asyncio.Queue(_WAITING) for _ in connections]
        try:
            async with self._report.shown(), asyncio.TaskGroup() as tasks:
                tasks.create_task(self._distribute(queues))
                for connection, queue in zip(connections, queues, strict=True):
                    tasks.create_task(self._work(connection, queue))
        except* (CliError, BrokenPipeError) as errors:
            # Nobody reading the refusals any more ends it as quietly as it ends any other command.
            raise _first(errors) from None
        finally:
            for connection in connections:
                await connection.close()

    async def _distribute(self, queues: list[asyncio.Queue[list[Job] | None]]) -> None:
        """Hand each user's lines to one lane, so that they arrive in their order."""
        reader = ReaderThread(self._prepared())
        coming = reader.ask()
        try:
            while (batch := await coming) is not None:
                coming = reader.ask()
                for number, fault in batch.unreadable:
                    self._report.refuse(number, None, fault)
                self._report.reached.begin(job.line.number for job in batch.jobs)
                shares: dict[int, list[Job]] = {}
                for job in batch.jobs:
                    shares.setdefault(hash(job.line.user) % len(queues), []).append(job)
                for index, share in shares.items():
                    await queues[index].put(share)
            for queue in queues:
                await queue.put(None)
        finally:
            if not coming.cancel() and not coming.cancelled():
                # Stopped by something else before it was looked at; Python complains of errors nobody asked for.
                coming.exception()
            reader.close()

    def _prepared(self) -> Iterator[Prepared]:
        """Batches of jobs with their tokens. Runs in the pump's thread, where it may block."""
        for batch in self._batches:
            ready: list[tuple[Line, Call]] = []
            unreadable: list[tuple[int, str]] = []
            for line in batch:
                try:
                    ready.append((line, self._readable(line)))
                except UsageError as error:
                    unreadable.append((line.number, error.what))
            authorizations = self._authorizations([line.user for line, _ in ready])
            yield Prepared([Job(line, call, authorizations[line.user]) for line, call in ready], unreadable)

    def _readable(self, line: Line) -> Call:
        """What the line asks for; raises `UsageError` for one that asks for nothing."""
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
            found[None] = self._credentials.token()
        return {user: f"{self._client_id} {token}" for user, token in found.items()}

    async def _work(self, connection: Connection, queue: asyncio.Queue[list[Job] | None]) -> None:
        while (jobs := await queue.get()) is not None:
            for job in jobs:
                await self._deliver(connection, job)

    async def _deliver(self, connection: Connection, job: Job) -> None:
        number = job.line.number
        answer = await self._written(connection, job)
        if answer.status_code == 401 and await asyncio.to_thread(self._credentials.renew, reason_of(answer.content)):
            job.authorization = (await asyncio.to_thread(self._authorizations, [job.line.user]))[job.line.user]
            answer = await self._written(connection, job)
        status = answer.status_code
        if status < 300:
            if not _is_of_a_service(answer.content):
                raise UnexpectedAnswer(answer)
            self._retry.renew()
            self._report.accept(number)
        elif status in (401, 403) or status >= 500 or status < 400:
            raise _stop(job, answer, self._credentials)
        else:
            self._report.refuse(number, status, reason_of(answer.content), sent=True)

    async def _written(self, connection: Connection, job: Job) -> Answer:
        """The answer to what the line asks for, which is sent again as long as that is sound."""
        reached, number = self._report.reached, job.line.number
        while True:
            reached.send(number)
            try:
                answer = await connection.send(job.call, job.authorization, line=number)
            except NotConnected:
                reached.take_back(number)
                raise
            if 300 <= answer.status_code < 500:
                reached.take_back(number)
            pause = await self._retry.pause_after(answer, connection, job)
            if pause is None:
                return answer
            await asyncio.sleep(pause)


def _is_of_a_service(body: bytes) -> bool:
    """Whether a success can be believed: every write is answered with a JSON object, a proxy's login page is none."""
    try:
        return isinstance(json.loads(body), dict)
    except (ValueError, RecursionError):
        return False


def _stop(job: Job, answer: Answer, credentials: Credentials) -> ErrorAnswer:
    """The end of it all: what is wrong with this line is wrong with every line."""
    error = error_of(job.call, answer, credentials)
    error.what = f"line {job.line.number}: {error.what}"
    if answer.status_code >= 500:
        error.fix = "send the rest when the service is well again"
    elif answer.status_code == 403:
        error.fix = "act in another role, for example --as viewer or --as backend"
    return error


def _first(errors: BaseExceptionGroup[Any]) -> BaseException:
    found: BaseException = errors
    while isinstance(found, BaseExceptionGroup):
        found = found.exceptions[0]
    return found
