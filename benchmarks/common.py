"""What the benchmarks share: starting servers, and reading what a process uses."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

Address = tuple[str, int]

CLIENT_ID = "bench"
SECRET = b"the secret of the benchmarks, 32+ bytes"
SERVER = (sys.executable, Path(__file__).with_name("servers.py"))
PROGRAM = str(Path(sys.executable).with_name("extcli"))


class Started(NamedTuple):
    """A server that runs, and its process id."""

    address: Address
    process: int

    @property
    def url(self) -> str:
        return f"http://{self.address[0]}:{self.address[1]}"


def launch(stack: ExitStack, *command: object, **options: Any) -> tuple[Started, subprocess.Popen[str]]:
    """Start a program that prints its URL first, until the stack closes; `options` go to `Popen`."""
    process = subprocess.Popen([*map(str, command)], stdout=subprocess.PIPE, text=True, **options)
    stack.callback(process.wait, 60)
    stack.callback(process.terminate)
    assert process.stdout is not None
    line = process.stdout.readline()
    url = urlsplit(line.removeprefix("listening on ").strip())
    assert url.port, f"{command} did not start: {line}"
    return Started((str(url.hostname), url.port), process.pid), process


def start_server(stack: ExitStack, name: str, *args: object) -> Started:
    """Start a server of `servers.py` until the stack closes."""
    return launch(stack, *SERVER, name, *args)[0]


def start_extcli(stack: ExitStack, *options: object, **popen: Any) -> Started:
    """Start `extcli serve` on a free port until the stack closes."""
    return launch(stack, PROGRAM, "serve", "--port", 0, *options, **popen)[0]


def pin_to_core(core: int) -> None:
    """Run this process on one core, so that server and load do not share theirs."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {core})


def argument(index: int, default: float) -> float:
    """Return a number from the command line, or a default."""
    return float(sys.argv[index]) if len(sys.argv) > index else default


def processor_time(process: int) -> float:
    """Return the processor time that a process and its descendants have used, in seconds, to the microsecond."""
    tasks = list(Path(f"/proc/{process}/task").iterdir())
    own = sum(int((task / "schedstat").read_text().split()[0]) for task in tasks) / 1e9
    children = (child for task in tasks for child in (task / "children").read_text().split())
    return own + sum(processor_time(int(child)) for child in children)


def memory(process: int, kind: str = "VmRSS") -> int:
    """Return the resident memory of a process in bytes; with `VmHWM`, its peak."""
    found = re.search(rf"{kind}:\s+(\d+) kB", Path(f"/proc/{process}/status").read_text())
    assert found, f"no {kind}"
    return int(found[1]) * 1024


def reset_peak(process: int) -> int:
    """Return the resident memory of a process in bytes, and make it the peak from now on."""
    Path(f"/proc/{process}/clear_refs").write_text("5")
    return memory(process)
