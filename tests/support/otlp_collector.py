"""An OpenTelemetry collector that keeps the spans it receives over OTLP/HTTP."""

from __future__ import annotations

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest


class Collector:
    """Listens on a free loopback port until the context ends."""

    def __init__(self) -> None:
        self.payloads: list[bytes] = []
        payloads = self.payloads

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                payloads.append(self.rfile.read(int(self.headers["Content-Length"])))
                self.send_response(200)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, format: str, *args: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._server.shutdown()
        self._server.server_close()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    def exports(self) -> list[ExportTraceServiceRequest]:
        return [ExportTraceServiceRequest.FromString(payload) for payload in self.payloads]

    def spans(self) -> list[Any]:
        """Return all spans by start time."""
        spans = [
            span
            for export in self.exports()
            for resource in export.resource_spans
            for scope in resource.scope_spans
            for span in scope.spans
        ]
        return sorted(spans, key=lambda span: span.start_time_unix_nano)

    def resource(self) -> dict[str, str]:
        """Return the resource attributes of the first export."""
        return {each.key: each.value.string_value for each in self.exports()[0].resource_spans[0].resource.attributes}


def attributes(span: Any) -> dict[str, str | int]:
    return {each.key: each.value.string_value or each.value.int_value for each in span.attributes}
