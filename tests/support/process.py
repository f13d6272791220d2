"""Runs `extcli serve` as a process."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from support import preloaded
from support.service import RunningService

COMMAND = (str(Path(sys.executable).with_name("extcli")), "serve")
STOP_TIMEOUT = 5
"""Seconds within which a clean stop must finish."""

T = TypeVar("T")


class ServerProcess(RunningService):
    """A running `extcli serve` that has printed its URL."""

    def __init__(self, process: subprocess.Popen[str] | preloaded.Process) -> None:
        assert process.stdout is not None
        self.process = process
        self.first_line = process.stdout.readline()
        super().__init__(self.first_line.removeprefix("listening on ").strip())

    def stop(self, *signals: int) -> int:
        """Send these signals and return the exit code."""
        for number in signals:
            self.process.send_signal(number)
        return self.process.wait(STOP_TIMEOUT)


def unexpected_log_lines(served: ServerProcess) -> list[str]:
    """Read the log until the service ends; return the lines that are not at level INFO."""
    assert served.process.stderr is not None
    return [line for line in served.process.stderr if " INFO emulator: " not in line]


def wait_until(condition: Callable[[], T], seen: Callable[[], object] = str) -> T:
    """Call `condition` until it returns a true value, for up to a minute, and return that value.

    `seen` is called after a timeout: its result is the message.
    """
    deadline = time.monotonic() + 60
    while not (result := condition()):
        assert time.monotonic() < deadline, f"timed out {seen()}"
        os.sched_yield()
    return result


@contextmanager
def server_process(*args: str, under: Sequence[str] = (), **environment: str) -> Iterator[ServerProcess]:
    """Run `extcli serve` with these arguments, on a free port unless `EXTCLI_SERVE_PORT` is set; kill it at the end.

    `under` is a command that executes it, such as `unshare`.
    """
    port = () if "EXTCLI_SERVE_PORT" in environment else ("--port", "0")
    variables = {**os.environ, **environment}
    if under:
        command, pipe = [*under, *COMMAND, *port, *args], subprocess.PIPE
        process = subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True, env=variables)
    else:
        process = preloaded.start(["serve", *port, *args], variables)
    with process:
        try:
            yield ServerProcess(process)
        finally:
            process.kill()
