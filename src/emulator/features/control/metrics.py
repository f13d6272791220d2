"""What a watcher may count: the Prometheus metrics of one running service."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Final

from prometheus_client import CollectorRegistry, Info, ProcessCollector, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from emulator.errors import HeadTooLarge, RequestTimeout, ServiceError, TooLarge, TooManyRequests
from emulator.features.control.outages import Outages

BOUNDS: Final = (0.001, 0.005, 0.025, 0.1, 0.5, 2.5)
"""Seconds: upper ends of the histogram's buckets, beside the one without end."""
_LIMITS: Final = (TooLarge, TooManyRequests, HeadTooLarge, RequestTimeout)


@dataclass(slots=True)
class _Answers:
    """Those of one endpoint, or to one action."""

    statuses: dict[int, int] = field(default_factory=dict)
    buckets: list[int] = field(default_factory=lambda: [0] * (len(BOUNDS) + 1))
    seconds: float = 0.0

    def add(self, status: int, seconds: float) -> None:
        self.statuses[status] = self.statuses.get(status, 0) + 1
        self.buckets[bisect_left(BOUNDS, seconds)] += 1
        self.seconds += seconds


class Metrics(Collector):
    """Counts for one running service, in a registry of its own. A `Recorder`.

    Labels are bounded: endpoints as declared, actions of the service, statuses, and the reasons of refusals. Counting
    is a dictionary's work; families are made of it at each scrape.
    """

    def __init__(self, environment: str, version: str, *, open_sockets: Callable[[], int]) -> None:
        self._open_sockets = open_sockets
        self._endpoints: dict[tuple[str, str], _Answers] = {}
        self._actions: dict[str, _Answers] = {}
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
        """An endpoint, by its declared path, has answered."""
        answers = self._endpoints.get((method, path))
        if answers is None:
            answers = self._endpoints[method, path] = _Answers()
        answers.add(status, seconds)

    def replied(self, action: str, status: int, seconds: float) -> None:
        """A request over the socket has been answered; `action` is empty for one that the service does not have."""
        self._actions.setdefault(action, _Answers()).add(status, seconds)

    def refused(self, error: ServiceError) -> None:
        """Something was refused; it counts if a limit was the reason."""
        if isinstance(error, _LIMITS):
            self._refused[error.reason] = self._refused.get(error.reason, 0) + 1

    def storage(self, *, ok: bool) -> None:
        """Storage was used, and did or did not do what it was to do."""
        self.outages.note(answers=ok)
        self._storage_failures += not ok

    def collect(self) -> Iterator[Metric]:
        """What the registry asks for at each scrape."""
        endpoints = [([method, path], answers) for (method, path), answers in self._endpoints.items()]
        actions = [([action], answers) for action, answers in self._actions.items()]
        yield _counter("emulator_requests", "Answered requests", ["method", "path"], endpoints)
        yield _histogram(
            "emulator_request_duration_seconds", "From a request to its answer", ["method", "path"], endpoints
        )
        yield _counter("emulator_socket_requests", "Answered requests over WebSockets", ["action"], actions)
        yield _histogram(
            "emulator_socket_request_duration_seconds", "From a request over a WebSocket to its answer",
            ["action"], actions,
        )  # fmt: skip
        refused = CounterMetricFamily(
            "emulator_limited", "What a limit refused, by the reason given", labels=["reason"]
        )
        for reason, number in self._refused.items():
            refused.add_metric([reason], number)
        yield refused
        failures = CounterMetricFamily("emulator_storage_failures", "Times that storage failed or did not answer")
        failures.add_metric([], self._storage_failures)
        yield failures
        reachable = "Whether storage answered when it was last checked, or did not fail since"
        yield GaugeMetricFamily("emulator_storage_reachable", reachable, value=not self.outages.is_on)
        yield GaugeMetricFamily("emulator_sockets", "Open WebSocket connections", value=self._open_sockets())
        lag = "How long one turn of the event loop took, at this scrape"
        yield GaugeMetricFamily("emulator_event_loop_lag_seconds", lag, value=self._lag)

    def text(self, *, lag: float) -> bytes:
        """The Prometheus exposition format; `lag` in seconds."""
        self._lag = lag
        return generate_latest(self._registry)


_Labelled = list[tuple[list[str], _Answers]]


def _counter(name: str, meaning: str, labels: list[str], counted: _Labelled) -> Metric:
    family = CounterMetricFamily(name, meaning, labels=[*labels, "status"])
    for values, answers in counted:
        for status, number in answers.statuses.items():
            family.add_metric([*values, str(status)], number)
    return family


def _histogram(name: str, meaning: str, labels: list[str], counted: _Labelled) -> Metric:
    family = HistogramMetricFamily(name, meaning, labels=labels)
    for values, answers in counted:
        ends = [*map(str, BOUNDS), "+Inf"]
        buckets = list(zip(ends, accumulate(answers.buckets), strict=True))
        family.add_metric(values, buckets, answers.seconds)
    return family
