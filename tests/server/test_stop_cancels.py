"""A stop while requests are unfinished, which get three more seconds."""

from __future__ import annotations

import socket
from urllib.parse import urlsplit

import pytest

from support.process import server_process


@pytest.mark.slow
def test_a_stop_logs_no_traceback_for_the_requests_that_it_ends() -> None:
    with server_process() as served, socket.socket() as client:
        client.connect((urlsplit(served.url).hostname, urlsplit(served.url).port))
        client.sendall(b"POST /_ns HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{")
        served._http.get("/_emulator/ready")
        served.process.terminate()
        _, log = served.process.communicate(timeout=10)

    assert 0 == served.process.returncode
    assert "Traceback" not in log
    assert 1 == log.count("Cancel 1 running task(s)")
