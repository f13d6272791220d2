"""Decides whether and when to repeat a request after 429 or 503."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING

from extcli.api.retry import RATE_LIMITED, UNAVAILABLE, Deadline, pause, retry_after
from extcli.bulk.operations import Operation, votes_add_up
from extcli.bulk.report import Report

if TYPE_CHECKING:
    from extcli.api.http import Answer
    from extcli.bulk.connection import Connection, Job

_SLOWING_DOWN = "the service limits the rate; slowing down"
_RETRYING = "the service is unavailable; retrying"


class RetryPolicy:
    """Retries for `seconds` without a success."""

    def __init__(self, seconds: float, operation: Operation, report: Report) -> None:
        self._deadline = Deadline(seconds)
        self._operation = operation
        self._report = report
        self._may_repeat: bool | None = None if operation.definition else bool(operation.repeatable)

    @property
    def repeatable(self) -> str:
        """Why lines may be sent again, as far as is known; empty if they may not."""
        return "" if self._may_repeat is False else self._operation.repeatable

    def reset(self) -> None:
        """Record a success."""
        self._deadline.reset()

    async def pause_after(self, answer: Answer, connection: Connection, job: Job, attempts: int) -> float | None:
        """Return the seconds to wait before a retry, or `None` for no retry. `attempts` counts the earlier retries.

        429 means that the request was not applied. After 503 it may have been, so only harmless requests are repeated.
        """
        seconds = self._pause(answer, attempts)
        if seconds is None:
            return None
        if answer.status_code == RATE_LIMITED:
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
            answer = await connection.send(replace(job, call=definition))
            seconds = self._pause(answer, attempts)
            if seconds is not None:
                attempts += 1
                await asyncio.sleep(seconds)
            elif answer.status_code >= 500 or answer.status_code == RATE_LIMITED:
                return False
            else:
                self._may_repeat = not votes_add_up(answer.status_code, answer.content)
        return bool(self._may_repeat)

    def _pause(self, answer: Answer, attempts: int) -> float | None:
        """Return the seconds that this answer asks to wait; `None` if it asks for none, or if there is no time left."""
        header = answer.headers.get("retry-after")
        is_asking = answer.status_code == RATE_LIMITED or (
            answer.status_code == UNAVAILABLE and retry_after(header) is not None
        )
        if not is_asking:
            return None
        seconds = pause(header, attempts)
        return seconds if self._deadline.allows(seconds) else None
