"""Traces: a span for each HTTP request, over OTLP. The only importer of opentelemetry, which is an extra.

What is exported, and where to, is said by the standard `OTEL_…` variables. The published instrumentation of ASGI would
name paths, queries and headers too, and hide what WebSockets ask of the application.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping
from importlib.metadata import version
from typing import Any, Final
from urllib.parse import urlsplit

from litestar.types import Receive, Scope, Send
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import OTELResourceDetector, Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import Span, SpanKind, StatusCode, Tracer
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from emulator.errors import ConfigurationError
from emulator.observability.redaction import redact
from emulator.observability.request_context import bind_context
from emulator.server.middleware import Application, Middleware

_FLUSHED_WITHIN: Final = 1.0
"""Seconds that a collector has to take the last spans at a stop. Those that it does not take are lost."""
_METHODS: Final = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "CONNECT", "TRACE"})
_PROTOCOL: Final = "http/protobuf"
_SAMPLERS: Final = (
    "always_on", "always_off", "traceidratio",
    "parentbased_always_on", "parentbased_always_off", "parentbased_traceidratio",
)  # fmt: skip
_propagator: Final = TraceContextTextMapPropagator()


class Tracing:
    """The exporter of one process. A thread of its own sends, so that no request waits for a collector."""

    def __init__(self, environment: str) -> None:
        """Raises `ConfigurationError` if a variable cannot be used."""
        _check_variables(os.environ)
        usual = Resource(
            {
                "service.name": "extcli",
                "service.version": version("extcli"),
                "deployment.environment.name": environment,
            }
        )
        resource = usual.merge(OTELResourceDetector().detect())
        self._provider = TracerProvider(resource=resource, shutdown_on_exit=False)
        try:
            self._provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
        except (ValueError, OSError) as error:
            raise ConfigurationError(f"--otel: an OTEL_… variable cannot be used: {error}") from None

    def around(self, app: Application) -> Application:
        """`app`, with a span for each of its requests."""
        return _Traced(app, self._provider.get_tracer("extcli", version("extcli")))

    def close(self) -> None:
        """Send what is left, if a collector takes it soon."""
        closing = threading.Thread(target=self._provider.shutdown, daemon=True)
        closing.start()
        closing.join(_FLUSHED_WITHIN)


class _Traced(Middleware):
    """Names routes as declared, and nothing else of what a client sent: no path, query, header or user."""

    def __init__(self, app: Application, tracer: Tracer) -> None:
        super().__init__(app)
        self._tracer = tracer

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        request: Any = scope
        method = request["method"] if request["method"] in _METHODS else "_OTHER"
        parents = [value.decode("latin-1") for name, value in request["headers"] if name == b"traceparent"]
        span = self._tracer.start_span(
            method,
            context=_propagator.extract({"traceparent": parents[0]} if parents else {}),
            kind=SpanKind.SERVER,
            attributes={"http.request.method": method, "url.scheme": request["scheme"]},
        )
        status = 500  # what the server answers where the application does not

        async def note(message: Any) -> None:
            nonlocal status
            status = message.get("status", status)
            await send(message)

        context = bind_context(request)
        try:
            await self._app(scope, receive, note)
        finally:
            _end(span, method, context.route, status)


def _check_variables(environ: Mapping[str, str]) -> None:
    """Raise for what the library would take for something else, or fail with at each export."""

    def refuse(name: str, why: str) -> None:
        raise ConfigurationError(f"--otel: {name}: {redact(repr(environ[name]))} {why}")

    for kind in ("TRACES_", ""):
        if (endpoint := environ.get(name := f"OTEL_EXPORTER_OTLP_{kind}ENDPOINT")) and not _is_http_url(endpoint):
            refuse(name, "is no URL that begins with http:// or https:// and names a host")
        if environ.get(name := f"OTEL_EXPORTER_OTLP_{kind}PROTOCOL", "").strip() not in ("", _PROTOCOL):
            refuse(name, f"is not spoken here: {_PROTOCOL} is")
    sampler = environ.get("OTEL_TRACES_SAMPLER", "").strip().lower()
    if sampler and sampler not in _SAMPLERS:
        refuse("OTEL_TRACES_SAMPLER", f"is none of {', '.join(_SAMPLERS)}")
    share = environ.get(name := "OTEL_TRACES_SAMPLER_ARG", "")
    if share and sampler.endswith("ratio") and not _is_share(share):
        refuse(name, "is no number from 0 to 1")


def _is_http_url(text: str) -> bool:
    try:
        url = urlsplit(text)
        return url.scheme in ("http", "https") and bool(url.hostname) and url.port != 0
    except ValueError:
        return False


def _is_share(text: str) -> bool:
    try:
        return 0 <= float(text) <= 1
    except ValueError:
        return False


def _end(span: Span, method: str, route: str, status: int) -> None:
    if route:
        span.update_name(f"{method} {route}")
        span.set_attribute("http.route", route)
    span.set_attribute("http.response.status_code", status)
    if status >= 500:
        span.set_attribute("error.type", str(status))
        span.set_status(StatusCode.ERROR)
    span.end()
