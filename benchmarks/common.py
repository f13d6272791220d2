"""What the benchmarks share: starting a server, and pinning a process to a core."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import urlsplit

Address = tuple[str, int]

CLIENT_ID = "bench"
SECRET = b"the secret of the benchmarks, 32+ bytes"


def start_server(stack: ExitStack, name: str, *args: object) -> tuple[Address, int]:
    """Start a server of `servers.py` until the stack closes; return its address and process id."""
    command = [sys.executable, str(Path(__file__).with_name("servers.py")), name, *map(str, args)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    stack.callback(process.wait, 20)
    stack.callback(process.terminate)
    assert process.stdout is not None
    url = urlsplit(process.stdout.readline().strip())
    assert url.port, f"{name} did not start"
    return (str(url.hostname), url.port), process.pid


def pin_to_core(core: int) -> None:
    """Run this process on one core, so that server and load do not share theirs."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {core})


def argument(index: int, default: float) -> float:
    """Return a number from the command line, or a default."""
    return float(sys.argv[index]) if len(sys.argv) > index else default


def processor_time(process: int) -> float:
    """Return the processor time that a process has used, in seconds, to the microsecond."""
    tasks = Path(f"/proc/{process}/task").iterdir()
    return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks) / 1e9
