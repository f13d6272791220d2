"""`extcli serve` as a process: how it starts, and how signals, a closed terminal and a lifeline stop it."""

from __future__ import annotations

import base64
import os
import re
import signal
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from support.exec_process import refuses
from support.extension_files import write_extensions
from support.faults import RawClient, add_fault, hits_of
from support.process import COMMAND, STOP_TIMEOUT, ServerProcess, server_process, unexpected_log_lines, wait_until
from support.program import PROGRAM
from support.service import CLIENT_ID, SECRET, real_seconds
from support.socket_client import SocketClient
from support.terminal import Terminal


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


@pytest.mark.long
def test_idle_and_incomplete_connections_do_not_delay_the_stop():
    with server_process() as served, served.connect() as idle, served.connect() as slow:
        idle.sendall(b"GET /_emulator/live HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert idle.recv(65_536).startswith(b"HTTP/1.1 200 ")
        slow.sendall(b"POST /v1/e/authtoken HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{")

        assert 0 == served.stop(signal.SIGTERM)
        assert "Traceback" not in served.process.stderr.read()


@pytest.fixture
def extensions(tmp_path: Path) -> tuple[str, str]:
    file = tmp_path / "extensions.toml"
    file.write_text(f'[extensions.my-extension]\nsecrets = ["{base64.b64encode(SECRET).decode()}"]\n')
    file.chmod(0o600)
    return "--extensions", str(file)


def test_many_hangups_and_a_sigterm_mean_one_clean_stop():
    with server_process() as served:
        assert 0 == served.stop(signal.SIGHUP, signal.SIGTERM, signal.SIGHUP)


@pytest.mark.parametrize(("is_registered", "reads_input"), [(True, True), (False, False)])
def test_a_closed_terminal_stops_the_service(extensions, is_registered: bool, reads_input: bool):
    with Terminal("serve", "--port", "0", *(extensions if is_registered else ()), reads_input=reads_input) as terminal:
        terminal.read_until("listening on")
        terminal.hang_up()
        assert 0 == terminal.process.wait(STOP_TIMEOUT)


def test_sighup_on_an_open_terminal_reloads_the_extensions(extensions):
    with Terminal("serve", "--port", "0", *extensions) as terminal:
        terminal.read_until("listening on")
        terminal.process.send_signal(signal.SIGHUP)
        terminal.read_until("reloaded by process")
        terminal.process.send_signal(signal.SIGTERM)
        assert 0 == terminal.wait()


def test_a_service_under_nohup_stays_when_it_is_hung_up():
    command = ["nohup", *COMMAND, "--port", "0"]

    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline().startswith(b"listening on")
        process.send_signal(signal.SIGHUP)
        process.send_signal(signal.SIGCONT)
        assert process.poll() is None
        os.kill(process.pid, 0)
        process.terminate()
        _, log = process.communicate(timeout=STOP_TIMEOUT)
        assert (0, 1) == (process.returncode, log.count(b"emulator: stopped"))


@contextmanager
def on_a_lifeline(*args: str) -> Iterator[tuple[subprocess.Popen[str], int, int]]:
    """Run `extcli serve`; return the process, its port and the write end of its lifeline."""
    reader, writer = os.pipe()
    pipe = subprocess.PIPE
    command = [PROGRAM, "serve", "--port", "0", "--lifeline", str(reader), *args]
    with subprocess.Popen(command, pass_fds=[reader], stdout=pipe, stderr=pipe, text=True) as process:
        os.close(reader)
        assert process.stdout is not None
        try:
            yield process, urlsplit(process.stdout.readline().removeprefix("listening on ").strip()).port or 0, writer
        finally:
            process.kill()


@pytest.mark.slow
def test_the_service_stops_cleanly_when_its_lifeline_ends(tmp_path: Path):
    with on_a_lifeline("--data", f"sqlite:///{tmp_path}/data.db") as (process, port, writer):
        os.close(writer)
        code = process.wait(STOP_TIMEOUT)
        log = process.stderr.read() if process.stderr else ""

    assert (0, True) == (code, refuses(port))
    assert ["serving", "stopped"] == [line.split(" emulator: ")[1].partition(":")[0] for line in log.splitlines()]


@pytest.mark.slow
def test_a_lifeline_that_is_not_open_is_refused():
    with server_process("--lifeline", "99") as refused:
        _, log = refused.process.communicate(STOP_TIMEOUT * 4)

    assert (2, True) == (refused.process.returncode, log.startswith("extcli serve: --lifeline 99: "))


VOTE = "/v1/e/vote?id=rps"


def test_a_stop_ends_stalls_and_delays_within_five_seconds():
    with server_process() as served, ExitStack() as stack:
        viewer = served.client("viewer", user="5551", channel="777")
        add_fault(served, "POST /v1/e/vote", "stall")
        add_fault(served, "GET /v1/e/vote", "delay", delay=600_000)
        add_fault(served, "SOCKET connect", "stall", client_id="stalled")
        add_fault(served, "SOCKET set state", "stall")
        add_fault(served, "BROADCAST *", "delay", delay=600_000)
        stalled, delayed, handshake = (stack.enter_context(RawClient(served)) for _ in range(3))
        game = stack.enter_context(SocketClient(served, f"/0.2.0/{CLIENT_ID}"))
        stalled.send(viewer, "POST", VOTE, {"value": 1})
        delayed.send(viewer, "GET", VOTE)
        handshake.handshake("/0.2.0/stalled")
        game.send("set", "state", {})
        admin = served.client("admin", user="9001", channel="777")
        admin.post("broadcast", json={"event": "late", "data": 1}).raise_for_status()
        wait_until(lambda: [1, 1, 1, 1, 1] == hits_of(served))

        assert 0 == served.stop(signal.SIGTERM)

        assert (b"", b"") == (stalled.rest(), handshake.rest())
        assert delayed.rest().startswith(b"HTTP/1.1 503 ")
        assert 1001 == game.close_code()
        assert [] == [line for line in unexpected_log_lines(served) if " INFO emulator.audit" not in line]


@pytest.fixture
def data(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/data.db"


def refusal(*options: str) -> str:
    """Start a service that must end with exit code 2, and return its one line."""
    with server_process(*options) as served:
        output, error = served.process.communicate(timeout=60)

    assert (2, "") == (served.process.returncode, served.first_line + output)
    (line,) = error.splitlines()
    return line


def vote(served: ServerProcess) -> int:
    return served.client("viewer", user="1", channel="777").post("vote", json={"value": 1}).status_code


def test_a_second_service_is_refused_and_names_the_first_also_under_another_name(data: str, tmp_path: Path):
    production = ("--production", "--extensions", write_extensions(tmp_path))
    with server_process("--data", data) as served:
        (tmp_path / "link.db").symlink_to("data.db")
        for file, options in ((data, ()), (data, production), (f"sqlite:///{tmp_path}/link.db", ())):
            line = refusal("--data", file, *options)
            assert f"in use by another extcli serve, process {served.process.pid}; stop it first" in line
            assert re.match(r"extcli serve: cannot open /\S*/(data|link)\.db: in use", line)
        assert 200 == vote(served)
