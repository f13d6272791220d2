"""What is sent again, and when, to a service that takes a line not now: one that limits callers, or is not well."""

from __future__ import annotations

import asyncio
import re
from typing import TYPE_CHECKING

from extcli import clock
from extcli.bulk.operations import Operation, lets_votes_add_up
from extcli.bulk.report import Report

if TYPE_CHECKING:
    from extcli.api.http import Answer
    from extcli.bulk.connection import Connection
    from extcli.bulk.job import Job

_LONGEST_PAUSE = 60
"""Seconds; who is told to wait longer is told so, as for any refusal."""

_SLOW = "the service limits how much may be sent at once; going on at its pace"
_NOT_NOW = "the service takes nothing for now; trying again"


class RetryPolicy:
    """Bears with a service that takes nothing for so many seconds, which begin anew with each line that it takes."""

    def __init__(self, seconds: float, writes: Operation, report: Report) -> None:
        self._seconds = seconds
        self._ends: float | None = None
        self._operation = writes
        self._report = report
        self._may_repeat: bool | None = None if writes.definition else bool(writes.again)

    @property
    def again(self) -> str:
        """Why lines may be sent again, where they may for all that is known."""
        return "" if self._may_repeat is False else self._operation.again

    def renew(self) -> None:
        """A line was taken."""
        self._ends = None

    async def pause_after(self, answer: Answer, connection: Connection, job: Job) -> int | None:
        """Seconds after which the job may come again; `None` where that is not sound, or not wanted.

        At 429 it was not done, so it will be done once; at 503 it may have been, and not everything may come twice.
        """
        pause = _asked(answer)
        if pause is None:
            return None
        if answer.status_code == 429:
            self._report.say_once(_SLOW)
            return pause
        if self._may_repeat is False or not self._lasts(pause):
            return None
        self._report.say_once(_NOT_NOW)
        return pause if await self._is_harmless_twice(connection, job) else None

    async def _is_harmless_twice(self, connection: Connection, job: Job) -> bool:
        """Asks for the definition, where only that can tell, until there is an answer."""
        definition = self._operation.definition
        while self._may_repeat is None and definition is not None:
            answer = await connection.send(definition, job.authorization, line=job.line.number)
            pause = _asked(answer)
            if pause is not None and (answer.status_code == 429 or self._lasts(pause)):
                await asyncio.sleep(pause)
            elif answer.status_code >= 500:
                return False
            else:
                self._may_repeat = not lets_votes_add_up(answer.status_code, answer.content)
        return bool(self._may_repeat)

    def _lasts(self, pause: float) -> bool:
        """Whether there is time for another try after this pause."""
        now = clock.elapsed()
        if self._ends is None:
            self._ends = now + self._seconds
        return now + pause <= self._ends


def _asked(answer: Answer) -> int | None:
    """Seconds after which the service wants to be asked again; `None` where it does not say, or says too many."""
    if answer.status_code not in (429, 503):
        return None
    after = answer.headers.get("retry-after", "")
    if not re.fullmatch(r"[0-9]{1,4}", after):
        return None
    return int(after) if int(after) <= _LONGEST_PAUSE else None
