"""The Prometheus metrics of one running service, and its storage outages."""

from __future__ import annotations

import asyncio
import logging
from bisect import bisect_left
from collections.abc import Awaitable, Callable, Iterator, Sized
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Final, Protocol

from prometheus_client import CollectorRegistry, Info, ProcessCollector, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

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
class _Responses:
    """The responses of one endpoint or action."""

    statuses: dict[int, int] = field(default_factory=dict)
    buckets: list[int] = field(default_factory=lambda: [0] * (len(BOUNDS) + 1))
    seconds: float = 0.0

    def add(self, status: int, seconds: float) -> None:
        self.statuses[status] = self.statuses.get(status, 0) + 1
        self.buckets[bisect_left(BOUNDS, seconds)] += 1
        self.seconds += seconds


class Metrics(Collector):
    """The metrics of one service. Implements `Recorder`. Label cardinality is bounded."""

    def __init__(self, environment: str, version: str, *, sockets: Callable[[], Sockets]) -> None:
        self._sockets = sockets
        self._endpoints: dict[tuple[str, str], _Responses] = {}
        self._actions: dict[str, _Responses] = {}
        self._refused: dict[str, int] = {}
        self._storage_failures = 0
        self.outages = Outages()
        self._lag = 0.0
        self._registry = CollectorRegistry()
        Info("emulator", "The running service", registry=self._registry).info(
            {"environment": environment, "version": version}
        )
        ProcessCollector(registry=self._registry)
        self._registry.register(self)

    def answered(self, method: str, path: str, status: int, seconds: float) -> None:
        responses = self._endpoints.get((method, path))
        if responses is None:
            responses = self._endpoints[method, path] = _Responses()
        responses.add(status, seconds)

    def replied(self, action: str, status: int, seconds: float) -> None:
        self._actions.setdefault(action, _Responses()).add(status, seconds)

    def refused(self, error: ServiceError) -> None:
        """Count an error response, if a limit caused it."""
        if isinstance(error, _LIMITS):
            self._refused[error.reason] = self._refused.get(error.reason, 0) + 1

    def storage(self, *, ok: bool) -> None:
        self.outages.note(ok=ok)
        self._storage_failures += not ok

    def collect(self) -> Iterator[Metric]:
        """Build the metric families; called by the registry at each scrape."""
        endpoints = [([method, path], responses) for (method, path), responses in self._endpoints.items()]
        actions = [([action], responses) for action, responses in self._actions.items()]
        yield _counter("emulator_requests", "Handled requests", ["method", "path"], endpoints)
        yield _histogram("emulator_request_duration_seconds", "Duration of requests", ["method", "path"], endpoints)
        yield _counter("emulator_socket_requests", "Handled requests over WebSockets", ["action"], actions)
        yield _histogram(
            "emulator_socket_request_duration_seconds", "Duration of requests over WebSockets", ["action"], actions
        )
        refused = CounterMetricFamily("emulator_limited", "Requests refused by a limit", labels=["reason"])
        for reason, number in self._refused.items():
            refused.add_metric([reason], number)
        yield refused
        failures = CounterMetricFamily("emulator_storage_failures", "Operations that failed in storage")
        failures.add_metric([], self._storage_failures)
        yield failures
        reachable = "1 if the last use of storage succeeded, else 0"
        yield GaugeMetricFamily("emulator_storage_reachable", reachable, value=not self.outages.is_on)
        sockets = self._sockets()
        yield GaugeMetricFamily("emulator_sockets", "Open WebSocket connections", value=len(sockets))
        waiting = "Open WebSocket connections of games that have not authenticated"
        yield GaugeMetricFamily("emulator_unauthenticated_sockets", waiting, value=sockets.unauthenticated)
        yield GaugeMetricFamily("emulator_tasks", "asyncio tasks of this process", value=len(asyncio.all_tasks()))
        lag = "Duration of one event loop iteration, measured at this scrape"
        yield GaugeMetricFamily("emulator_event_loop_lag_seconds", lag, value=self._lag)

    def text(self, *, lag: float) -> bytes:
        """The metrics in the Prometheus text format; `lag` is the event loop lag in seconds."""
        self._lag = lag
        return generate_latest(self._registry)


_Labeled = list[tuple[list[str], _Responses]]


def _counter(name: str, help_text: str, labels: list[str], series: _Labeled) -> Metric:
    family = CounterMetricFamily(name, help_text, labels=[*labels, "status"])
    for values, responses in series:
        for status, number in responses.statuses.items():
            family.add_metric([*values, str(status)], number)
    return family


def _histogram(name: str, help_text: str, labels: list[str], series: _Labeled) -> Metric:
    family = HistogramMetricFamily(name, help_text, labels=labels)
    for values, responses in series:
        bounds = [*map(str, BOUNDS), "+Inf"]
        buckets = list(zip(bounds, accumulate(responses.buckets), strict=True))
        family.add_metric(values, buckets, responses.seconds)
    return family
