"""What the benchmarks share: starting servers, and reading what a process uses."""

from __future__ import annotations

import base64
import os
import re
import resource
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

Address = tuple[str, int]

CLIENT_ID = "bench"
SECRET = b"the secret of the benchmarks, 32+ bytes"
PEERS = Path(__file__).with_name("peers")
SERVERS = Path(__file__).with_name("servers.py")
PROGRAM = str(Path(sys.executable).with_name("extcli"))
_LIMITS = "caller-rate max-sockets max-unauthenticated address-sockets address-connections address-pages address-kib"
LIMITS = [f"--{name}=1000000" for name in _LIMITS.split()]


class Started(NamedTuple):
    """A server that runs."""

    address: Address
    process: subprocess.Popen[str]

    @property
    def url(self) -> str:
        return f"http://{self.address[0]}:{self.address[1]}"


def start(stack: ExitStack, *command: object, core: int | None = 0, **options: Any) -> Started:
    """Run a server on one core until the stack closes; `options` go to `Popen`.

    The word `PORT` in its command becomes a free port.
    """
    with socket.create_server(("127.0.0.1", 0)) as free:
        address: Address = free.getsockname()
    process = subprocess.Popen(
        [str(address[1]) if word == "PORT" else str(word) for word in command],
        env=os.environ | {"NODE_ENV": "production"},
        cwd=PEERS,
        preexec_fn=None if core is None else partial(pin_to_core, core),
        **{"stdout": subprocess.DEVNULL, "text": True, **options},
    )
    stack.callback(process.wait, 60)
    stack.callback(process.terminate)
    deadline = time.monotonic() + 60
    while True:
        try:
            socket.create_connection(address).close()
            return Started(address, process)
        except ConnectionRefusedError:
            assert process.poll() is None, f"{command} ended at once"
            assert time.monotonic() < deadline, f"{command} did not listen within 60 s"
            time.sleep(0.05)


def start_server(stack: ExitStack, name: str) -> Started:
    """Run a server of `servers.py` until the stack closes."""
    return start(stack, sys.executable, SERVERS, name, "--port", "PORT")


def start_extcli(
    stack: ExitStack, *options: object, command: Sequence[object] = (PROGRAM, "serve"), core: int | None = 0
) -> Started:
    """Run `extcli serve` until the stack closes; return when it is ready."""
    port = ("--port", "PORT", "--log-level", "error", "--no-log-audit")
    started = start(stack, *command, *port, *options, core=core, stdout=subprocess.PIPE)
    assert started.process.stdout is not None
    assert started.process.stdout.readline().startswith("listening on "), f"{options} did not start"
    return started


def start_service(stack: ExitStack, data: str, *, name: str = "service", core: int = 0) -> Started:
    """Run a service in production until the stack closes. Its limits are enforced, but never reached."""
    extensions = Path(stack.enter_context(TemporaryDirectory()), "extensions.toml")
    extensions.touch(0o600)
    extensions.write_text(f'[extensions.{CLIENT_ID}]\nsecrets = ["{base64.b64encode(SECRET).decode()}"]\n')
    options = ("--production", "--extensions", extensions, "--data", data, *LIMITS)
    return start_extcli(stack, *options, command=(sys.executable, SERVERS, name), core=core)


def pin_to_core(core: int) -> None:
    """Run this process on one core, so that server and load do not share theirs."""
    os.sched_setaffinity(0, {core})


def allow_open_files() -> None:
    """Let this process, and those that it starts, open as many files as the system allows."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def argument(index: int, default: float) -> float:
    """Return a number from the command line, or a default."""
    return float(sys.argv[index]) if len(sys.argv) > index else default


def processor_time(process: int) -> float:
    """Return the processor time that a process has used, in seconds, to the microsecond."""
    tasks = Path(f"/proc/{process}/task").iterdir()
    return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks) / 1e9


def memory(process: int, kind: str = "VmRSS") -> int:
    """Return the resident memory of a process in bytes; with `VmHWM`, its peak."""
    found = re.search(rf"{kind}:\s+(\d+) kB", Path(f"/proc/{process}/status").read_text())
    assert found, f"no {kind}"
    return int(found[1]) * 1024
