"""When to send a refused request again: one policy for single commands, bulk runs, simulations and probes."""

from __future__ import annotations

import re
from collections.abc import Callable
from email.utils import parsedate_to_datetime
from random import uniform
from typing import Final, TypeVar

from extcli import clock
from extcli.errors import CliError, ErrorResponse, Refused, ServerError, Unreachable

T = TypeVar("T")

RATE_LIMITED: Final = 429
"""The request was not applied, so sending it again is always harmless."""
UNAVAILABLE: Final = 503
"""The request may have been applied."""
FLOOR: Final = 0.1
"""The least seconds before a request is sent again, whatever the service says. A part of it is random."""
_FIRST: Final = 0.5
_LONGEST: Final = 8.0
"""Seconds before the first and the latest repetitions, if the service does not say when."""


def retry_after(header: str | None) -> float | None:
    """Return the seconds that `Retry-After` asks for, a number or an HTTP date; `None` if it is absent or invalid."""
    text = (header or "").strip()
    if re.fullmatch(r"[0-9]{1,9}", text):
        return float(text)
    try:
        return max(0.0, parsedate_to_datetime(text).timestamp() - clock.now() / 1000)
    except (ValueError, OverflowError):
        return None


def asks_to_wait(status: int, header: str | None) -> bool:
    """Return whether a response asks to send the request again later, by its status and its `Retry-After`."""
    return status == RATE_LIMITED or (status == UNAVAILABLE and retry_after(header) is not None)


def pause(header: str | None, attempts: int = 0) -> float:
    """Return the seconds to wait before a request is sent again, at least about `FLOOR`, with jitter.

    Without a usable `Retry-After`, the wait doubles with each earlier repetition, up to 8 seconds.
    """
    asked = retry_after(header)
    if asked is None:
        return min(_FIRST * 2.0 ** min(attempts, 16), _LONGEST) * uniform(0.75, 1.25)
    return max(asked, FLOOR) + uniform(0, FLOOR)


class Deadline:
    """When to stop repeating: `seconds` after the first refusal since the latest success."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._ends: float | None = None
        self._waits = 0

    def reset(self) -> None:
        """Record a success."""
        self._ends = None

    def allows(self, pause: float) -> bool:
        """Return whether a request may be sent again after this pause, in seconds. The first call starts the time."""
        now = clock.elapsed()
        if self._ends is None:
            self._ends = now + self._seconds
        return now + pause <= self._ends

    def wait(self, header: str | None) -> bool:
        """Wait before a request is sent again; return False, without a wait, if that would be too late."""
        seconds = pause(header, self._waits)
        if not self.allows(seconds):
            return False
        clock.sleep(seconds)
        self._waits += 1
        return True


def may_help(error: CliError) -> bool:
    """Return whether a request may succeed later: after 429, 5xx or no response."""
    return isinstance(error, (ServerError, Unreachable)) or (
        isinstance(error, Refused) and error.status == RATE_LIMITED
    )


def is_asked_for(error: CliError) -> bool:
    """Return whether the service asked to send a request again later."""
    return isinstance(error, ErrorResponse) and asks_to_wait(error.status, error.retry_after)


def until_done(call: Callable[[], T], seconds: float, repeats: Callable[[CliError], bool] = may_help) -> T:
    """Make a call, and after an error that `repeats` accepts, again for `seconds`; then raise the last error.

    `Retry-After` is kept: if it asks for more time than is left, the error is raised at once.
    """
    deadline = Deadline(seconds)
    while True:
        try:
            return call()
        except CliError as error:
            after = error.retry_after if isinstance(error, ErrorResponse) else None
            if not repeats(error) or not deadline.wait(after):
                raise
