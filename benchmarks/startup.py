"""Start-up time and idle memory: `python benchmarks/startup.py [--rounds N] [--cpu] [--commands]`.

Three ratios: `extcli --help` to an import of typer, and the first response and the memory of `extcli serve` to an
empty Litestar application. `--commands` also times other commands, and the
start of a command of `extcli exec`. `--cpu` compares processor time, not elapsed
time: on a busy machine it varies less. All runs of a round are interleaved, and each reference runs twice: its ratio to
itself is the noise.
"""

from __future__ import annotations

import argparse
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from statistics import median
from tempfile import TemporaryDirectory

from common import PROGRAM, processor_time
from report import Row, ratios, show, spread

EMPTY_APPLICATION = """
import sys
import uvicorn
from litestar import Litestar
uvicorn.run(Litestar([]), port=int(sys.argv[1]))
"""
LIBRARIES = "import typer, httpx, rich"
COMMANDS = {
    "extcli vote --help": ["vote", "--help"],
    "extcli token mint": ["token", "mint"],
    "extcli vote get -o json": ["vote", "get", "-o", "json"],
    "extcli vote get -o table": ["vote", "get", "-o", "table"],
}
POLL = b'{"stats":{"stddev":0,"mean":1,"sum":1,"count":1,"specific":[0,1]}}'


@dataclass(frozen=True)
class Goal:
    """A ratio of two measurements of each round, with its limits."""

    name: str
    measured: str
    reference: str
    must: float
    stretch: float
    unit: str = "s"


GOALS = (
    Goal("extcli --help / import typer", "help", "typer", 1.2, 1.05),
    Goal("first response: serve / empty Litestar", "serve", "empty", 1.1, 0.9),
    Goal("idle memory: serve / empty Litestar", "serve memory", "empty memory", 1.1, 0.95, "KiB"),
)


@dataclass(frozen=True)
class Cost:
    """The cost of one process: elapsed and processor time in seconds, and resident memory in KiB if it was read."""

    elapsed: float
    cpu: float
    memory: int = 0


class Poll(BaseHTTPRequestHandler):
    """Answers every request with the same poll, so that only the command is measured."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(POLL)))
        self.end_headers()
        self.wfile.write(POLL)

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing."""


@contextmanager
def bytecode_cache() -> Iterator[dict[str, str]]:
    """Return an environment in which compiled modules are kept in a new folder, as in an installation."""
    with TemporaryDirectory() as folder:
        environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
        yield {**environment, "PYTHONPYCACHEPREFIX": folder}


def run(command: list[str], environment: dict[str, str]) -> Cost:
    """Run a command to its end."""
    started = time.perf_counter()
    process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    elapsed = time.perf_counter() - started
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0, f"{command} failed"
    return Cost(elapsed, usage.ru_utime + usage.ru_stime)


def serve(command: list[str], environment: dict[str, str]) -> Cost:
    """Start a server on a free port, measure until its first response, and end it."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    started = time.perf_counter()
    quiet = subprocess.DEVNULL
    process = subprocess.Popen([*command, str(port)], env=environment, stdout=quiet, stderr=quiet)
    answer = first_answer(port, process)
    elapsed = time.perf_counter() - started
    assert answer.startswith((b"HTTP/1.1 200", b"HTTP/1.1 404")), answer
    memory = int(subprocess.check_output(["ps", "-o", "rss=", "-p", str(process.pid)]))
    process.kill()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return Cost(elapsed, usage.ru_utime + usage.ru_stime, memory)


def first_answer(port: int, process: subprocess.Popen[bytes]) -> bytes:
    """Request a path that neither server has, as soon as the port is open; both route it, and answer 404."""
    while process.poll() is None:
        with suppress(ConnectionRefusedError), socket.create_connection(("127.0.0.1", port)) as connection:
            connection.sendall(b"GET /absent HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n")
            return connection.recv(65536)
        time.sleep(0.001)
    raise AssertionError("the server ended before its first response")


def execute(environment: dict[str, str]) -> Cost:
    """Run a command with `extcli exec`, and measure until it starts."""
    started = time.perf_counter()
    command = [PROGRAM, "exec", "--quiet", "--", "sh", "-c", "echo started; read end"]
    process = subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stdout.readline() == b"started\n"
    cost = Cost(time.perf_counter() - started, processor_time(process.pid))
    process.stdin.close()
    assert process.wait() == 1, "read at the end of the input exits 1"
    return cost


def measure(cases: dict[str, Callable[[], Cost]], rounds: int, read: Callable[[Cost], float]) -> dict[str, list[float]]:
    """Measure all cases once per round, after a round that is not counted."""
    found: dict[str, list[float]] = {}
    for number in range(rounds + 1):
        for name, case in cases.items():
            cost = case()
            if number:
                found.setdefault(name, []).append(read(cost))
                if cost.memory:
                    found.setdefault(f"{name} memory", []).append(cost.memory)
    return found


def goal_rows(found: dict[str, list[float]]) -> list[Row]:
    """Return a row for each goal. The reference of a round is its first measurement."""
    return [
        Row(
            "11",
            goal.name,
            ratios(found[goal.measured], found[goal.reference]),
            ratios(found[again(goal.reference)], found[goal.reference]),
            goal.must,
            goal.stretch,
            higher_is_better=False,
            figures={f"{name} {goal.unit}": median(found[name]) for name in (goal.measured, goal.reference)},
        )
        for goal in GOALS
    ]


def again(name: str) -> str:
    """Return the name of the second measurement of a reference."""
    return name.replace("typer", "typer again").replace("empty", "empty again")


def measure_all(rounds: int, *, cpu: bool = False, commands: bool = False) -> dict[str, list[float]]:
    """Measure the cases of the goals and, on request, further commands."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Poll)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with bytecode_cache() as environment:
        environment |= {"EXTCLI_URL": f"http://127.0.0.1:{server.server_port}", "EXTCLI_SECRET": "c2VjcmV0"}
        python = [sys.executable, "-c"]

        def typer() -> Cost:
            return run([*python, "import typer"], environment)

        def empty() -> Cost:
            return serve([*python, EMPTY_APPLICATION], environment)

        cases: dict[str, Callable[[], Cost]] = {
            "typer": typer,
            "help": lambda: run([PROGRAM, "--help"], environment),
            "typer again": typer,
            "empty": empty,
            "serve": lambda: serve([PROGRAM, "serve", "--port"], environment),
            "empty again": empty,
        }
        if commands:
            cases["exec"] = lambda: execute(environment)
            cases["libraries"] = lambda: run([*python, LIBRARIES], environment)
            for name, command in COMMANDS.items():
                cases[name] = lambda command=command: run([PROGRAM, *command], environment)  # type: ignore[misc]
        found = measure(cases, rounds, lambda cost: cost.cpu if cpu else cost.elapsed)
    server.shutdown()
    return found


def rows(rounds: int, seconds: float) -> list[Row]:
    """Measure goal 11. A start has no duration to choose, so `seconds` is not used."""
    return goal_rows(measure_all(rounds))


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--cpu", action="store_true", help="compare processor time")
    parser.add_argument("--commands", action="store_true", help="also time other commands")
    args = parser.parse_args()
    found = measure_all(args.rounds, cpu=args.cpu, commands=args.commands)
    show(goal_rows(found))
    if args.commands:
        share = spread(ratios(found["exec"], found["serve"]))
        print(f"{'extcli exec -- COMMAND':38} {share} of the first response of serve")
    for name in COMMANDS if args.commands else ():
        print(f"{name:38} {spread(ratios(found[name], found['libraries']))} of {LIBRARIES!r}")


if __name__ == "__main__":
    main()
