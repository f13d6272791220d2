"""Runs the program of an environment with a clock that others set, and with random bytes from a seed.

`python launcher.py CLOCK SEED run ARGS...` runs `extcli ARGS`. `python launcher.py CLOCK SEED fork SOCKET` imports the
program once, and runs it in a forked process for each connection to the socket (`forking.py`).

It patches the standard library only, and before the program starts, because both versions of the program must run under
it however their modules are named. It runs with the environment of either version, so it imports nothing else.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import json
import mmap
import os
import pkgutil
import random
import signal
import socket
import sys
import time
from collections.abc import Callable
from contextlib import suppress

Main = Callable[[], int | None]


def freeze_time(path: str) -> None:
    """Let the wall clock be the number of milliseconds in a file of 8 bytes. Durations stay real."""
    with open(path, "rb") as file:
        shared = mmap.mmap(file.fileno(), 8, access=mmap.ACCESS_READ)

    def now_ns() -> int:
        return int.from_bytes(shared[:8], "little") * 1_000_000

    def now() -> float:
        return int.from_bytes(shared[:8], "little") / 1_000

    real_gmtime, real_localtime, real_strftime = time.gmtime, time.localtime, time.strftime
    time.time_ns, time.time = now_ns, now
    time.gmtime = lambda seconds=None: real_gmtime(now() if seconds is None else seconds)
    time.localtime = lambda seconds=None: real_localtime(now() if seconds is None else seconds)
    time.strftime = lambda text, at=None: real_strftime(text, real_localtime(now()) if at is None else at)


def seed_random(seed: str) -> None:
    """Let all random bytes come from a seed: `os.urandom`, and with it `secrets` and `uuid`."""
    source = random.Random(seed)
    os.urandom = random._urandom = source.randbytes  # type: ignore[attr-defined]
    random.seed(seed)


def entry() -> Main:
    """Import and return the program."""
    found = importlib.metadata.entry_points(group="console_scripts", name="extcli")
    return next(iter(found)).load()


def run(main: Main, args: list[str]) -> int:
    """Run the program as the script of an installed wheel does, and return its exit code."""
    sys.argv = [os.path.join(os.path.dirname(sys.executable), "extcli"), *args]
    try:
        code = main()
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    for stream in (sys.stdout, sys.stderr):
        with suppress(Exception):
            stream.flush()
    return code or 0


def serve_forks(clock: str, seed: str, path: str) -> None:
    """Run the program for each connection: standard streams, then the call as JSON; answers with the exit code."""
    main = entry()
    _import_all("extcli")
    signal.signal(signal.SIGCHLD, _reap)
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(path)
    listener.listen(64)
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    while True:
        wire, _ = listener.accept()
        if os.fork() == 0:
            listener.close()
            os._exit(_forked(wire, main, seed))
        wire.close()


def _reap(*_: object) -> None:
    """Wait for ended forks, so that the time they used counts as this process's."""
    with suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def _forked(wire: socket.socket, main: Main, seed: str) -> int:
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    head, streams, _, _ = socket.recv_fds(wire, 4, 3)
    call = b""
    while len(call) < int.from_bytes(head, "big"):
        call += wire.recv(1 << 16)
    args, folder, variables, number = json.loads(call)
    for place, stream in enumerate(streams):
        os.dup2(stream, place)
        os.close(stream)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(variables)
    seed_random(f"{seed}/{number}")
    code = run(main, args) & 0xFF
    # The streams end before the response, so that a reader has everything when it learns the exit code.
    null = os.open(os.devnull, os.O_RDWR)
    for place in range(3):
        os.dup2(null, place)
    wire.sendall(bytes([code]))
    return code


def _import_all(name: str) -> None:
    """Import every module of a package, whatever their names are, so that a fork starts at once."""
    package = importlib.import_module(name)
    for module in pkgutil.walk_packages(package.__path__, f"{name}.", onerror=lambda _: None):
        if not module.name.startswith(
            (f"{name}.pytest_plugin", f"{name}.testing", f"{name}.completion", f"{name}.__main__")
        ):
            with suppress(Exception):
                importlib.import_module(module.name)


if __name__ == "__main__":
    clock_file, chosen_seed, mode, *rest = sys.argv[1:]
    freeze_time(clock_file)
    seed_random(chosen_seed)
    if mode == "fork":
        serve_forks(clock_file, chosen_seed, rest[0])
    else:
        sys.exit(run(entry(), rest))
