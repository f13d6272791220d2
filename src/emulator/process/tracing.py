"""Exports a span for each HTTP request over OTLP. Only this module imports opentelemetry, which is an extra.

The standard `OTEL_…` variables configure the exporter. The published ASGI instrumentation would also export paths,
queries and headers.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping
from http import HTTPMethod
from importlib.metadata import version
from typing import Any
from urllib.parse import urlsplit

from litestar.types import ASGIApp, Receive, Scope, Send
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import OTELResourceDetector, Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import SpanKind, StatusCode
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from emulator.core.errors import ConfigurationError
from emulator.core.observability.masking import redact
from emulator.core.observability.request_context import bind_context

_FLUSH_SECONDS = 1.0
"""Seconds to send the last spans at a stop. Later ones are lost."""
_METHODS = frozenset(HTTPMethod)
_PROTOCOL = "http/protobuf"
_SAMPLERS = (
    "always_on", "always_off", "traceidratio",
    "parentbased_always_on", "parentbased_always_off", "parentbased_traceidratio",
)  # fmt: skip
_propagator = TraceContextTextMapPropagator()


class Tracing:
    """The exporter of one process. A thread sends the spans, so that no request waits for the collector."""

    def __init__(self, environment: str) -> None:
        """Raise `ConfigurationError` for an invalid `OTEL_…` variable."""
        check_variables(os.environ)
        attributes = {"service.name": "extcli", "service.version": version("extcli")}
        defaults = Resource(attributes | {"deployment.environment.name": environment})
        resource = defaults.merge(OTELResourceDetector().detect())
        self._provider = TracerProvider(resource=resource, shutdown_on_exit=False)
        try:
            self._provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
        except (ValueError, OSError) as error:
            raise ConfigurationError(f"--otel: an environment variable is invalid: {error}") from None

    def wrap(self, app: ASGIApp) -> ASGIApp:
        """Return `app` with a span for each request: the declared route, method and status; no path, query, header or
        user.
        """
        tracer = self._provider.get_tracer("extcli", version("extcli"))

        async def traced(scope: Scope, receive: Receive, send: Send) -> None:
            request: Any = scope
            method = request["method"] if request["method"] in _METHODS else "_OTHER"
            parents = [value.decode("latin-1") for name, value in request["headers"] if name == b"traceparent"]
            span = tracer.start_span(
                method,
                context=_propagator.extract({"traceparent": parents[0]} if parents else {}),
                kind=SpanKind.SERVER,
                attributes={"http.request.method": method, "url.scheme": request["scheme"]},
            )
            status = 500  # sent by the server if the application fails

            async def send_and_note(message: Any) -> None:
                nonlocal status
                status = message.get("status", status)
                await send(message)

            context = bind_context(request)
            try:
                await app(scope, receive, send_and_note)
            finally:
                if context.route:
                    span.update_name(f"{method} {context.route}")
                    span.set_attribute("http.route", context.route)
                span.set_attribute("http.response.status_code", status)
                if status >= 500:
                    span.set_attribute("error.type", str(status))
                    span.set_status(StatusCode.ERROR)
                span.end()

        return traced

    def close(self) -> None:
        """Send the remaining spans, if the collector takes them in time."""
        closing = threading.Thread(target=self._provider.shutdown, daemon=True)
        closing.start()
        closing.join(_FLUSH_SECONDS)


def check_variables(environ: Mapping[str, str]) -> None:
    """Raise `ConfigurationError` for values that the library would misread, or that would fail at each export."""

    def refuse(name: str, problem: str) -> None:
        raise ConfigurationError(f"--otel: {name}: {redact(repr(environ[name]))} {problem}")

    for kind in ("TRACES_", ""):
        if (endpoint := environ.get(name := f"OTEL_EXPORTER_OTLP_{kind}ENDPOINT")) and not _is_http_url(endpoint):
            refuse(name, "must be a URL with http:// or https:// and a host")
        if environ.get(name := f"OTEL_EXPORTER_OTLP_{kind}PROTOCOL", "").strip() not in ("", _PROTOCOL):
            refuse(name, f"is not supported; use {_PROTOCOL}")
    sampler = environ.get("OTEL_TRACES_SAMPLER", "").strip().lower()
    if sampler and sampler not in _SAMPLERS:
        refuse("OTEL_TRACES_SAMPLER", f"is not one of {', '.join(_SAMPLERS)}")
    ratio = environ.get(name := "OTEL_TRACES_SAMPLER_ARG", "")
    if ratio and sampler.endswith("ratio") and not _is_ratio(ratio):
        refuse(name, "must be a number from 0 to 1")


def _is_http_url(text: str) -> bool:
    try:
        url = urlsplit(text)
        return url.scheme in ("http", "https") and bool(url.hostname) and url.port != 0
    except ValueError:
        return False


def _is_ratio(text: str) -> bool:
    try:
        return 0 <= float(text) <= 1
    except ValueError:
        return False
