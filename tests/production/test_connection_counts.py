"""Limits of open HTTP connections: of one address, and of the process."""

from __future__ import annotations

import logging
import re
import signal
import socket
from contextlib import ExitStack
from dataclasses import replace
from http.client import HTTPResponse
from pathlib import Path

import pytest

from emulator.core.environment import PRODUCTION
from emulator.core.settings import Limits, Settings
from support.process import server_process, unexpected_log_lines, wait_until
from support.service import RunningService, in_production, live_server
from support.socket_client import SocketClient

LIVE = b"GET /_emulator/live HTTP/1.1\r\nHost: localhost\r\n\r\n"


def limited(most: int, **settings: object) -> Settings:
    return in_production(limits=Limits(anonymous=replace(PRODUCTION.anonymous, address_connections=most)), **settings)


def status_on(connection: socket.socket) -> int:
    """Send a request, and return the status of the response; 0 if the service has closed the connection."""
    response = HTTPResponse(connection)
    try:
        connection.sendall(LIVE)
        response.begin()
        response.read()
    except ConnectionError:
        return 0
    return response.status


def opened(live: RunningService, stack: ExitStack) -> socket.socket:
    return stack.enter_context(live.connect())


def test_an_address_opens_no_more_connections_than_the_limit(caplog: pytest.LogCaptureFixture):
    with live_server(limited(3)) as live, ExitStack() as stack, caplog.at_level(logging.WARNING):
        first = [opened(live, stack) for _ in range(3)]
        assert [200] * 3 == [status_on(each) for each in first]

        refused = [opened(live, stack).makefile("rb").read() for _ in range(20)]

        assert [200] * 3 == [status_on(each) for each in first]
        first.pop().close()
        wait_until(lambda: 200 == status_on(opened(live, stack)))
        assert 20 <= live.service.metrics.limited["Too many connections"]
    for each in refused:
        head, _, body = each.partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 429 Too Many Requests\r\n")
        assert {b"connection: close", b"retry-after: 10", b"x-content-type-options: nosniff"} < set(head.split(b"\r\n"))
        assert b"3 connections from this address are open; the limit is 3" in body
    lines = [each.getMessage() for each in caplog.records if "refused a connection" in each.getMessage()]
    assert "refused a connection from 127.0.0.0: 3 connections from this address are open; the limit is 3" == lines[0]
    assert 1 == len(set(lines))


def test_sockets_refused_requests_named_proxies_and_the_sandbox_do_not_count():
    # Sockets and refused requests give their places back
    with live_server(limited(1)) as live, ExitStack() as stack:
        for _ in range(3):
            stack.enter_context(SocketClient(live))
        for _ in range(3):
            wait_until(lambda: live.exchange(b"GARBAGE\r\n\r\n").startswith(b"HTTP/1.1 400 "))
        wait_until(lambda: 200 == status_on(opened(live, stack)))

    # A named proxy opens any number of connections
    with live_server(limited(1, proxies=("127.0.0.0/8",))) as live, ExitStack() as stack:
        assert [200] * 3 == [status_on(opened(live, stack)) for _ in range(3)]

    # The sandbox does not count connections
    assert 0 == Settings().anonymous.address_connections
    assert 500 == PRODUCTION.anonymous.address_connections


@pytest.mark.slow
def test_a_process_keeps_descriptors_free_and_says_so():
    with server_process(under=("prlimit", "--nofile=128")) as served, ExitStack() as stack:
        first = opened(served, stack)
        assert 200 == status_on(first)

        statuses = [status_on(opened(served, stack)) for _ in range(200)]

        assert 200 == status_on(first)
        stack.close()
        with served.client("viewer", user="1", channel="777") as viewer:
            wait_until(lambda: 200 == viewer.get("vote").status_code)
        served.stop(signal.SIGTERM)
        log = "".join(unexpected_log_lines(served))

    count = statuses.count(200)
    assert 60 < count < 96
    assert {200} == set(statuses[:count])
    assert not {*statuses[count:]} & {200}
    line = "refused a connection from 127.0.0.0: 96 files and connections of this process are open; the limit is 96"
    assert line in log
    assert log.count("\n") < 10


@pytest.mark.slow
def test_a_service_opens_as_many_files_as_the_system_allows():
    """With the usual limit of 1,024, the sockets and connections of one address would take all."""
    with server_process(under=("prlimit", "--nofile=64:4096")) as served:
        limits = Path(f"/proc/{served.process.pid}/limits").read_text()

    assert re.search(r"Max open files +4096 +4096 ", limits)
