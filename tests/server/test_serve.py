"""`extcli serve` as a process: how it starts and stops (operations, Starting)."""

from __future__ import annotations

import re
import signal
import subprocess
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from support.extension_files import write_extensions
from support.process import server_process, unexpected_log_lines
from support.service import real_seconds


@pytest.fixture
def registered(tmp_path: Path) -> str:
    return write_extensions(tmp_path)


def test_the_first_line_is_the_url_and_nothing_follows_until_sigterm():
    with server_process("--log-level", "debug") as served:
        alive = served.client("viewer", user="1", channel="777").post("vote", json={"value": 1})
        ready = served._http.get("/_emulator/ready")
        code = served.stop(signal.SIGTERM)

        assert re.fullmatch(r"listening on http://127\.0\.0\.1:[1-9]\d*\n", served.first_line)
        assert (200, 200, 0, "") == (alive.status_code, ready.status_code, code, served.process.stdout.read())


def test_environment_variables_set_options_and_sigint_stops_it(registered: str, tmp_path: Path):
    with server_process(
        EXTCLI_SERVE_PORT="0",
        EXTCLI_SERVE_HOST="localhost",
        EXTCLI_SERVE_PRODUCTION="1",
        EXTCLI_SERVE_DATA=f"sqlite:///{tmp_path}/data.db",
        EXTCLI_SERVE_EXTENSIONS=registered,
        EXTCLI_SERVE_MAX_BODY="1",
    ) as served:
        ready = served._http.get("/_emulator/ready").json()
        client = served.client("admin", user="1", channel="777", exp=real_seconds() + 600)
        sizes = [client.post("vote", content=b'{"value":1}' + b" " * size).status_code for size in (1_000, 1_024)]

        assert served.first_line.startswith("listening on http://localhost:")
        assert ("production", "sqlite") == (ready["environment"], ready["data"])
        assert [200, 413] == sizes
        assert (tmp_path / "data.db").exists()
        assert (0, []) == (served.stop(signal.SIGINT), unexpected_log_lines(served))


def test_repeated_signals_cause_one_clean_stop(tmp_path: Path):
    with server_process("--data", f"sqlite:///{tmp_path}/data.db") as served:
        while served.process.poll() is None:
            served.process.send_signal(signal.SIGTERM)
            served.process.send_signal(signal.SIGINT)
            with suppress(subprocess.TimeoutExpired):
                served.process.wait(0.001)

        assert (0, []) == (served.process.returncode, unexpected_log_lines(served))


def test_start_and_stop_are_logged_once(tmp_path: Path):
    with server_process("--data", f"sqlite:///{tmp_path}/data.db?synchronous=full") as served:
        port = urlsplit(served.url).port
        assert 0 == served.stop(signal.SIGTERM)
        lines = [line.split(" emulator: ")[1].strip() for line in served.process.stderr]

    assert [
        f"serving: extcli {version('extcli')}, sandbox, data in {tmp_path}/data.db, format 1, port {port}, "
        "registered extensions: 0",
        "stopped",
    ] == lines


@pytest.mark.long
def test_idle_and_incomplete_connections_do_not_delay_the_stop():
    with server_process() as served, served.connect() as idle, served.connect() as slow:
        idle.sendall(b"GET /_emulator/live HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert idle.recv(65_536).startswith(b"HTTP/1.1 200 ")
        slow.sendall(b"POST /v1/e/authtoken HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{")

        assert 0 == served.stop(signal.SIGTERM)
        assert "Traceback" not in served.process.stderr.read()


def test_a_flag_overrides_a_variable_and_production_has_no_control_api(registered: str):
    with server_process("--production", "--extensions", registered, EXTCLI_SERVE_EXTENSIONS="/absent") as served:
        statuses = [
            served.client("viewer", exp=real_seconds() + 600).get("user_info").status_code,
            served.client("viewer", exp=real_seconds() + 600, client_id="stranger").get("user_info").status_code,
            served._http.get("/_emulator/clock").status_code,
            served._http.post("/_emulator/reset").status_code,
            served._http.post("/v1/e/authtoken", json={}).status_code,
        ]

    assert [200, 401, 404, 404, 404] == statuses
