"""The metrics in the Prometheus text format. Imported at the first scrape."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

from prometheus_client import CollectorRegistry, Info, ProcessCollector, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from emulator.core.observability.metrics import BUCKET_BOUNDS, Metrics, ResponseCounts


def prometheus_text(metrics: Metrics, *, lag: float) -> bytes:
    """Return the metrics in the Prometheus text format; `lag` is the event loop lag in seconds."""
    registry = CollectorRegistry()
    Info("emulator", "The running service", registry=registry).info(
        {"environment": metrics.environment, "version": metrics.version}
    )
    ProcessCollector(registry=registry)
    registry.register(_MetricFamilies(metrics, lag))
    return generate_latest(registry)


@dataclass(eq=False)
class _MetricFamilies(Collector):
    _metrics: Metrics
    _lag: float

    def collect(self) -> Iterator[Metric]:
        """Build the metric families; called by the registry."""
        metrics = self._metrics
        endpoints, actions = metrics.endpoints, metrics.actions
        yield _counter("emulator_requests", "Handled requests", ["method", "path"], endpoints)
        yield _histogram("emulator_request_duration_seconds", "Duration of requests", ["method", "path"], endpoints)
        yield _counter("emulator_socket_requests", "Handled requests over WebSockets", ["action"], actions)
        yield _histogram(
            "emulator_socket_request_duration_seconds", "Duration of requests over WebSockets", ["action"], actions
        )
        refused = CounterMetricFamily("emulator_limited", "Requests refused by a limit", labels=["reason"])
        for reason, number in metrics.limited.items():
            refused.add_metric([reason], number)
        yield refused
        failures = metrics.storage_failures
        yield CounterMetricFamily("emulator_storage_failures", "Storage operations that failed", value=failures)
        is_reachable = metrics.outage_since is None
        for name, meaning, value in (
            ("emulator_storage_reachable", "1 if the last use of storage succeeded, otherwise 0", is_reachable),
            ("emulator_sockets", "Open WebSocket connections", metrics.sockets()),
            ("emulator_unauthenticated_sockets", "Open sockets of unauthenticated games", metrics.unauthenticated()),
            ("emulator_held_requests", "Requests that wait for a condition", metrics.held()),
            ("emulator_tasks", "asyncio tasks of this process", len(asyncio.all_tasks())),
            ("emulator_event_loop_lag_seconds", "Duration of one event loop iteration at this scrape", self._lag),
        ):
            yield GaugeMetricFamily(name, meaning, value=value)


def _counter(name: str, help_text: str, labels: list[str], series: Mapping[Any, ResponseCounts]) -> Metric:
    family = CounterMetricFamily(name, help_text, labels=[*labels, "status"])
    for values, responses in series.items():
        for status, number in responses.statuses.items():
            family.add_metric([*values, str(status)], number)
    return family


def _histogram(name: str, help_text: str, labels: list[str], series: Mapping[Any, ResponseCounts]) -> Metric:
    family = HistogramMetricFamily(name, help_text, labels=labels)
    bounds = [*map(str, BUCKET_BOUNDS), "+Inf"]
    for values, responses in series.items():
        buckets = list(zip(bounds, accumulate(responses.buckets), strict=True))
        family.add_metric([*values], buckets, responses.seconds)
    return family
