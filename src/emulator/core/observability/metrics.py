"""The counts of one running service, its storage outages, and the conversion of exceptions to errors for clients."""

from __future__ import annotations

import asyncio
import logging
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field

from emulator.core.clock import monotonic
from emulator.core.errors import (
    EngineError,
    HeadTooLarge,
    RequestTimeout,
    ServiceError,
    TooLarge,
    TooManyRequests,
    internal_error,
    storage_failed,
)
from emulator.core.wire.refusals import too_deep

BUCKET_BOUNDS = (0.001, 0.005, 0.025, 0.1, 0.5, 2.5)
"""Upper bounds of the histogram buckets, in seconds; `+Inf` follows."""
_LIMIT_ERRORS = (TooLarge, TooManyRequests, HeadTooLarge, RequestTimeout)

_CHECK_INTERVAL = 1.0
"""Seconds between two checks during an outage."""
_log = logging.getLogger("emulator")


@dataclass(slots=True)
class ResponseCounts:
    """The responses of one endpoint or action."""

    statuses: dict[int, int] = field(default_factory=dict)
    buckets: list[int] = field(default_factory=lambda: [0] * (len(BUCKET_BOUNDS) + 1))
    seconds: float = 0.0

    def add(self, status: int, seconds: float) -> None:
        """Count a response that took this long."""
        self.statuses[status] = self.statuses.get(status, 0) + 1
        self.buckets[bisect_left(BUCKET_BOUNDS, seconds)] += 1
        self.seconds += seconds


@dataclass(eq=False, repr=False)
class Metrics:
    """The metrics of one service. No method blocks or raises. Label cardinality is bounded."""

    environment: str
    version: str
    sockets: Callable[[], int]
    """Counts the open connections."""
    unauthenticated: Callable[[], int]
    """Counts the games that have not authenticated."""
    held: Callable[[], int]
    """Counts the requests that wait for a condition."""
    endpoints: defaultdict[tuple[str, str], ResponseCounts] = field(default_factory=lambda: defaultdict(ResponseCounts))
    """By method and declared path. A response takes from the complete headers of its request."""
    actions: defaultdict[tuple[str], ResponseCounts] = field(default_factory=lambda: defaultdict(ResponseCounts))
    """The replies over sockets, by action; empty if it is unknown."""
    limited: dict[str, int] = field(default_factory=dict)
    """The number of refusals, by reason."""
    storage_failures: int = 0
    outage_since: float | None = None
    """When the present outage of storage began, in seconds of `monotonic`: at the first failed use."""
    _outage: asyncio.Event = field(default_factory=asyncio.Event)

    def count_refusal(self, error: ServiceError) -> None:
        """Count an error response that a limit caused; other errors are ignored."""
        if isinstance(error, _LIMIT_ERRORS):
            self.limited[error.reason] = self.limited.get(error.reason, 0) + 1

    def note_storage(self, *, ok: bool) -> None:
        """Record whether an operation of the storage engine succeeded. The end of an outage is logged."""
        self.storage_failures += not ok
        if not ok:
            self.outage_since = monotonic() if self.outage_since is None else self.outage_since
            self._outage.set()
        elif self.outage_since is not None:
            _log.info("storage works again after %.1f s", monotonic() - self.outage_since)
            self.outage_since = None
            self._outage.clear()

    async def watch_storage(self, check: Callable[[], Awaitable[None]]) -> None:
        """During each outage, call `check` until it succeeds. Runs forever."""
        while True:
            await self._outage.wait()
            await asyncio.sleep(_CHECK_INTERVAL)
            with suppress(EngineError):
                await check()
                self.note_storage(ok=True)


def error_for_client(failure: Exception, where: str, recorder: Metrics) -> ServiceError:
    """Count an exception, log it if the client did not cause it, and return the error that the client gets.

    Call it while the exception is being handled. `where` names the endpoint or the action in the log.
    """
    if isinstance(failure, ServiceError):
        recorder.count_refusal(failure)
        return failure
    if isinstance(failure, RecursionError):
        return too_deep(reason="Invalid body", what="the request")
    if isinstance(failure, EngineError):
        recorder.note_storage(ok=False)
        _log.error("storage failed in %s: %s", where, failure)
        return storage_failed()
    _log.exception("unexpected failure in %s", where)
    return internal_error()
