"""Decides whether and when to repeat a request after 429 or 503."""

from __future__ import annotations

import asyncio
import re
from dataclasses import replace
from typing import TYPE_CHECKING

from extcli import clock
from extcli.bulk.operations import Operation, votes_add_up
from extcli.bulk.report import Report

if TYPE_CHECKING:
    from extcli.api.http import Answer
    from extcli.bulk.connection import Connection, Job

_MAX_PAUSE = 60
"""Seconds of `Retry-After`; a longer pause is reported as a refusal."""

_RATE_LIMITED = "the service limits the rate; slowing down"
_UNAVAILABLE = "the service is unavailable; retrying"


class RetryPolicy:
    """Retries for `seconds` of unavailability, counted anew after each success."""

    def __init__(self, seconds: float, operation: Operation, report: Report) -> None:
        self._seconds = seconds
        self._ends: float | None = None
        self._operation = operation
        self._report = report
        self._may_repeat: bool | None = None if operation.definition else bool(operation.repeatable)

    @property
    def repeatable(self) -> str:
        """Why lines may be sent again, as far as is known; empty if they may not."""
        return "" if self._may_repeat is False else self._operation.repeatable

    def reset(self) -> None:
        """Record a success."""
        self._ends = None

    async def pause_after(self, answer: Answer, connection: Connection, job: Job) -> int | None:
        """Return the seconds to wait before a retry, or `None` for no retry.

        429 means that the request was not applied. After 503 it may have been, so only harmless requests are repeated.
        """
        pause = _retry_after(answer)
        if pause is None:
            return None
        if answer.status_code == 429:
            self._report.report_once(_RATE_LIMITED)
            return pause
        if self._may_repeat is False or not self._has_time_for(pause):
            return None
        self._report.report_once(_UNAVAILABLE)
        return pause if await self._is_repeatable(connection, job) else None

    async def _is_repeatable(self, connection: Connection, job: Job) -> bool:
        """Return whether repeating is harmless, from the definition of the poll if necessary."""
        definition = self._operation.definition
        while self._may_repeat is None and definition is not None:
            answer = await connection.send(replace(job, call=definition))
            pause = _retry_after(answer)
            if pause is not None and (answer.status_code == 429 or self._has_time_for(pause)):
                await asyncio.sleep(pause)
            elif answer.status_code >= 500:
                return False
            else:
                self._may_repeat = not votes_add_up(answer.status_code, answer.content)
        return bool(self._may_repeat)

    def _has_time_for(self, pause: float) -> bool:
        now = clock.elapsed()
        if self._ends is None:
            self._ends = now + self._seconds
        return now + pause <= self._ends


def _retry_after(answer: Answer) -> int | None:
    """Return the seconds of `Retry-After`; `None` if there are none or too many, or for any other status."""
    if answer.status_code not in (429, 503):
        return None
    after = answer.headers.get("retry-after", "")
    if not re.fullmatch(r"[0-9]{1,4}", after):
        return None
    return int(after) if int(after) <= _MAX_PAUSE else None
