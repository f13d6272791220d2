"""`extcli serve --otel`: a span for each request."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status

from engines.redis_server import RedisServer
from support.otlp_collector import Collector, attributes
from support.process import COMMAND, STOP_TIMEOUT, ServerProcess, server_process
from support.service import CHANNEL, Client

pytestmark = pytest.mark.long

TRACE, PARENT = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"


@pytest.fixture
def collector() -> Iterator[Collector]:
    with Collector() as collector:
        yield collector


def traced(collector: Collector, *args: str, **environment: str):
    return server_process("--otel", *args, OTEL_EXPORTER_OTLP_ENDPOINT=collector.url, **environment)


def vote(served: ServerProcess, **headers: str) -> Client:
    client = served.client("viewer", user="5551", channel=CHANNEL)
    client.post("vote?id=rps", json={"value": 1}, headers=headers).raise_for_status()
    return client


def test_a_request_is_a_span_with_nothing_from_the_client_but_the_parent(collector: Collector, tmp_path: Path):
    names = {"X-Request-Id": "requestid1", "User-Agent": "agent1", "tracestate": "vendor=state1"}
    with traced(collector, "--data", f"sqlite:///{tmp_path}/data.db") as served:
        client = vote(served, traceparent=f"00-{TRACE}-{PARENT}-01", **names)
        client.get("/nothing/path1?query1=query1")
        client.request("PURGE", "vote")
        token = client.headers["authorization"].split()[1]
        assert 0 == served.stop(signal.SIGTERM)

    span, *others = collector.spans()
    assert 2 == len(others)
    assert ("POST /v1/e/vote", Span.SPAN_KIND_SERVER) == (span.name, span.kind)
    assert (TRACE, PARENT) == (span.trace_id.hex(), span.parent_span_id.hex())
    assert {
        "http.request.method": "POST",
        "http.route": "/v1/e/vote",
        "http.response.status_code": 200,
        "url.scheme": "http",
    } == attributes(span)
    assert 0 < span.end_time_unix_nano - span.start_time_unix_nano < 5e9
    sent = b"".join(collector.payloads).decode("latin-1")
    given = [*token.split("."), "5551", "rps", "requestid1", "agent1", "state1", "path1", "query1"]
    assert [] == [each for each in given if each in sent]


def test_the_standard_variables_set_resource_and_sampling(collector: Collector):
    with traced(
        collector, EXTCLI_SERVE_OTEL="1", OTEL_SERVICE_NAME="votes", OTEL_RESOURCE_ATTRIBUTES="team=red"
    ) as served:
        vote(served)
        assert 0 == served.stop(signal.SIGTERM)
    with traced(collector, OTEL_TRACES_SAMPLER="always_off") as served:
        vote(served)
        assert 0 == served.stop(signal.SIGTERM)

    assert 1 == len(collector.spans())
    assert {"service.name": "votes", "team": "red", "deployment.environment.name": "sandbox"}.items() <= (
        collector.resource().items()
    )


def test_a_failure_is_a_span_with_error_status(collector: Collector, tmp_path: Path):
    with RedisServer(tmp_path) as redis, traced(collector, "--data", redis.url()) as served:
        redis.kill()
        served.client("viewer", user="1", channel=CHANNEL).get("vote")
        assert 0 == served.stop(signal.SIGTERM)

    (span,) = collector.spans()
    assert (503, "503") == (attributes(span)["http.response.status_code"], attributes(span)["error.type"])
    assert Status.STATUS_CODE_ERROR == span.status.code


def test_an_unreachable_collector_delays_neither_requests_nor_the_stop():
    with socket.create_server(("127.0.0.1", 0)) as silent:
        free = socket.create_server(("127.0.0.1", 0))
        closed = free.getsockname()[1]
        free.close()
        for port in (closed, silent.getsockname()[1]):
            with server_process("--otel", OTEL_EXPORTER_OTLP_ENDPOINT=f"http://127.0.0.1:{port}",
                         OTEL_BSP_SCHEDULE_DELAY="10") as served:  # fmt: skip
                client = served.client("viewer", user="1", channel=CHANNEL)
                started = time.monotonic()
                statuses = {client.get("vote").status_code for _ in range(100)}
                elapsed = time.monotonic() - started

                assert ({200}, True) == (statuses, elapsed < 10)
                assert 0 == served.stop(signal.SIGTERM)


def test_without_the_packages_it_exits_2_and_names_them(tmp_path: Path):
    (tmp_path / "opentelemetry").mkdir()
    (tmp_path / "opentelemetry" / "__init__.py").write_text(
        "raise ModuleNotFoundError(\"No module named 'opentelemetry'\", name='opentelemetry')"
    )
    command, path = [*COMMAND, "--port", "0", "--otel"], {"PYTHONPATH": str(tmp_path)}
    ended = subprocess.run(command, env=os.environ | path, capture_output=True, text=True, timeout=60, check=False)

    assert (2, "") == (ended.returncode, ended.stdout)
    assert ended.stderr.startswith("extcli serve: --otel: opentelemetry is not installed: pip install 'extcli[otel]'")


def test_an_invalid_variable_exits_2_with_one_line():
    with server_process("--otel", OTEL_BSP_MAX_EXPORT_BATCH_SIZE="9999") as served:
        _, log = served.process.communicate(STOP_TIMEOUT * 4)

    assert (2, 1) == (served.process.returncode, len(log.splitlines()))
    assert log.startswith("extcli serve: --otel: ")
