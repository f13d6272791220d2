"""Goal 11: start-up time and idle memory.

Three ratios: `extcli --help` to an import of typer, and the first response and the memory of `extcli serve` to an empty
Litestar application. All runs of a round are interleaved, and each reference runs twice.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from tempfile import TemporaryDirectory

from common import PROGRAM, memory
from report import Row, compare

EMPTY_APPLICATION = """
import sys
import uvicorn
from litestar import Litestar
uvicorn.run(Litestar([]), port=int(sys.argv[1]), log_level="critical")
"""
TYPER = (sys.executable, "-c", "import typer")
HELP = (PROGRAM, "--help")
EMPTY = (sys.executable, "-c", EMPTY_APPLICATION)
SERVE = (PROGRAM, "serve", "--log-level", "critical", "--port")


def seconds_of(command: Sequence[str], environment: dict[str, str]) -> float:
    """Run a command to its end; return how long that took."""
    started = time.perf_counter()
    subprocess.run(command, env=environment, stdout=subprocess.DEVNULL, check=True)
    return time.perf_counter() - started


def first_response(command: Sequence[str], environment: dict[str, str]) -> tuple[float, int]:
    """Start a server on a free port; return the seconds until its first response, and its memory in bytes then."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    started = time.perf_counter()
    with subprocess.Popen([*command, str(port)], env=environment, stdout=subprocess.DEVNULL) as process:
        answer = answer_of(port, process)
        elapsed = time.perf_counter() - started
        assert answer.startswith(b"HTTP/1.1 404"), answer
        used = memory(process.pid)
        process.kill()
    return elapsed, used


def answer_of(port: int, process: subprocess.Popen[bytes]) -> bytes:
    """Request a path that neither server has, as soon as the port is open."""
    while process.poll() is None:
        with suppress(ConnectionRefusedError), socket.create_connection(("127.0.0.1", port)) as connection:
            connection.sendall(b"GET /absent HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n")
            return connection.recv(65536)
        time.sleep(0.001)
    raise AssertionError("the server ended before its first response")


def rows(rounds: int, seconds: float) -> list[Row]:
    """Measure goal 11. A start has no duration to choose, so `seconds` is not used."""
    names = ("typer", "help", "typer again", "empty", "serve", "empty again")
    times: dict[str, list[float]] = {name: [] for name in names}
    sizes: dict[str, list[float]] = {name: [] for name in names[3:]}
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    with TemporaryDirectory() as folder:
        environment["PYTHONPYCACHEPREFIX"] = folder  # compiled modules are kept, as in an installation
        for number in range(rounds + 1):
            found = {name: seconds_of(HELP if name == "help" else TYPER, environment) for name in names[:3]}
            for name in names[3:]:
                found[name], size = first_response(SERVE if name == "serve" else EMPTY, environment)
                if number:
                    sizes[name].append(size / 1e6)
            for name, value in found.items() if number else ():
                times[name].append(value)
    return [
        compare("11", "extcli --help / import typer", times, ("help", "typer"), "s", 1.2, 1.05),
        compare("11", "first response: serve / empty Litestar", times, ("serve", "empty"), "s", 1.1, 0.9),
        compare("11", "idle memory: serve / empty Litestar", sizes, ("serve", "empty"), "MB", 1.1, 0.95),
    ]
