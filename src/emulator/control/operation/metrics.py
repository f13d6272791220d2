"""The counts of one running service, and its storage outages. `exposition` writes them for Prometheus."""

from __future__ import annotations

import asyncio
import logging
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Awaitable, Callable, Sized
from dataclasses import dataclass, field
from typing import Final, Protocol

from emulator.clock import monotonic
from emulator.errors import EngineError, HeadTooLarge, RequestTimeout, ServiceError, TooLarge, TooManyRequests

BOUNDS: Final = (0.001, 0.005, 0.025, 0.1, 0.5, 2.5)
"""Upper bounds of the histogram buckets, in seconds; `+Inf` follows."""
_LIMITS: Final = (TooLarge, TooManyRequests, HeadTooLarge, RequestTimeout)

_CHECK_INTERVAL: Final = 1.0
"""Seconds between two checks during an outage."""
_log = logging.getLogger("emulator")


class Sockets(Sized, Protocol):
    """The open connections."""

    @property
    def unauthenticated(self) -> int:
        """The number of games that have not authenticated."""


class Outages:
    """Storage outages, from the first failed use to a successful use or check. The end is logged once."""

    def __init__(self) -> None:
        self._since: float | None = None
        self._started = asyncio.Event()

    @property
    def is_on(self) -> bool:
        return self._since is not None

    def note(self, *, ok: bool) -> None:
        if not ok:
            self._since = monotonic() if self._since is None else self._since
            self._started.set()
        elif self._since is not None:
            _log.info("storage answers again after %.1f s", monotonic() - self._since)
            self._since = None
            self._started.clear()

    async def watch(self, check: Callable[[], Awaitable[None]]) -> None:
        """During each outage, call `check` until it succeeds. Runs forever."""
        while True:
            await self._started.wait()
            await asyncio.sleep(_CHECK_INTERVAL)
            try:
                await check()
            except EngineError:
                continue
            self.note(ok=True)


@dataclass(slots=True)
class Responses:
    """The responses of one endpoint or action."""

    statuses: dict[int, int] = field(default_factory=dict)
    buckets: list[int] = field(default_factory=lambda: [0] * (len(BOUNDS) + 1))
    seconds: float = 0.0

    def add(self, status: int, seconds: float) -> None:
        self.statuses[status] = self.statuses.get(status, 0) + 1
        self.buckets[bisect_left(BOUNDS, seconds)] += 1
        self.seconds += seconds


class Metrics:
    """The metrics of one service. Implements `Recorder`. Label cardinality is bounded."""

    def __init__(
        self, environment: str, version: str, *, sockets: Callable[[], Sockets], held: Callable[[], int]
    ) -> None:
        self.environment = environment
        self.version = version
        self.sockets = sockets
        self.held = held
        """Counts the requests that wait for a condition."""
        self.endpoints: defaultdict[tuple[str, str], Responses] = defaultdict(Responses)
        """By method and path."""
        self.actions: defaultdict[str, Responses] = defaultdict(Responses)
        self.limited: dict[str, int] = {}
        """The number of refusals, by reason."""
        self.storage_failures = 0
        self.outages = Outages()

    def answered(self, method: str, path: str, status: int, seconds: float) -> None:
        self.endpoints[method, path].add(status, seconds)

    def replied(self, action: str, status: int, seconds: float) -> None:
        self.actions[action].add(status, seconds)

    def refused(self, error: ServiceError) -> None:
        """Count an error response that a limit caused; other errors are ignored."""
        if isinstance(error, _LIMITS):
            self.limited[error.reason] = self.limited.get(error.reason, 0) + 1

    def storage(self, *, ok: bool) -> None:
        self.outages.note(ok=ok)
        self.storage_failures += not ok
