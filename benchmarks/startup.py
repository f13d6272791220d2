"""The start-up time of commands: `python benchmarks/startup.py`.

Prints the median of each command divided by that of a process that imports typer, httpx and rich.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

RUNS = 15
PROGRAM = str(Path(sys.executable).with_name("extcli"))
REFERENCE = [sys.executable, "-c", "import typer, httpx, rich"]
POLL = b'{"stats":{"stddev":0,"mean":1,"sum":1,"count":1,"specific":[0,1]}}'
COMMANDS = {
    "extcli --help": [PROGRAM, "--help"],
    "extcli vote --help": [PROGRAM, "vote", "--help"],
    "extcli token mint": [PROGRAM, "token", "mint"],
    "extcli vote get -o json": [PROGRAM, "vote", "get", "-o", "json"],
    "extcli vote get -o table": [PROGRAM, "vote", "get", "-o", "table"],
}


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


def milliseconds(command: list[str], environment: dict[str, str]) -> float:
    started = time.perf_counter()
    subprocess.run(command, env=environment, stdout=subprocess.DEVNULL, check=True)
    return (time.perf_counter() - started) * 1000


def main() -> None:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Poll)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    environment = {
        **os.environ,
        "EXTCLI_URL": f"http://127.0.0.1:{server.server_port}",
        "EXTCLI_SECRET": "c2VjcmV0",
    }
    commands = {"import typer, httpx, rich": REFERENCE, **COMMANDS}
    times: dict[str, list[float]] = {name: [] for name in commands}
    for _ in range(RUNS):  # interleaved, so that a busy moment affects all commands
        for name, command in commands.items():
            times[name].append(milliseconds(command, environment))
    reference = statistics.median(times["import typer, httpx, rich"])
    for name, values in times.items():
        median = statistics.median(values)
        print(f"{name:28} {median:7.1f} ms  {median / reference:5.2f} of the reference")
    server.shutdown()


if __name__ == "__main__":
    main()
