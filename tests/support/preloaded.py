"""Starts `extcli` by forking a process that has already imported it, which takes 0.1 s of CPU instead of 1 s.

`start` works like `subprocess.Popen`, and the process id is the program's own. Apart from imports, the program runs as
if a shell had started it. Tests of the start and of imports run the real program. `put_program` makes an `extcli` for
shells, which passes signals on.
"""

from __future__ import annotations

import atexit
import json
import os
import selectors
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import IO, Any

PROGRAM = Path(sys.executable).with_name("extcli")
_LENGTH = 4
_SHELL_PROGRAM = """#!{python} -IS
import json, os, signal, socket, sys
wire = socket.socket(socket.AF_UNIX)
wire.connect({service!r} if sys.argv[1:2] in (["serve"], ["exec"]) else {command!r})
call = json.dumps([sys.argv[1:], os.getcwd(), dict(os.environ), True]).encode()
socket.send_fds(wire, [len(call).to_bytes(4, "big")], [0, 1, 2])
wire.sendall(call)
pid = int.from_bytes(wire.recv(4), "big")
for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
    signal.signal(number, lambda number, _: os.kill(pid, number))
code = int.from_bytes(wire.recv(4), "big", signed=True)
sys.exit(code if code >= 0 else 128 - code)
"""
"""Imports little, so that it starts in a few ms. Its end is the end of the command."""


class Process:
    """A running program: the part of `subprocess.Popen` that tests use, over text streams."""

    def __init__(self, wire: socket.socket, pid: int, stdin: IO[str], stdout: IO[str], stderr: IO[str]) -> None:
        self.pid = pid
        self.stdin = stdin
        self.stdout = stdout
        self.stderr = stderr
        self.returncode: int | None = None
        self._wire = wire

    def poll(self) -> int | None:
        """Return the exit code, or `None` while the program runs."""
        with suppress(subprocess.TimeoutExpired):
            self.wait(0)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Wait for the program to end, and return its exit code. Raises `subprocess.TimeoutExpired`."""
        if self.returncode is None:
            self._wire.settimeout(timeout)
            try:
                status = self._wire.recv(_LENGTH)
            except (TimeoutError, BlockingIOError):
                raise subprocess.TimeoutExpired("extcli", timeout or 0) from None
            self.returncode = int.from_bytes(status, "big", signed=True)
            self._wire.close()
        return self.returncode

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            with suppress(ProcessLookupError):  # it has ended, but its exit code has not arrived
                os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def communicate(self, timeout: float | None = None) -> tuple[str, str]:
        """Return standard output and standard error. Reads one after the other, so for short output only.

        After `timeout` seconds the program is killed.
        """
        timer = threading.Timer(timeout or 600, self.kill)
        timer.start()
        try:
            printed = self.stdout.read(), self.stderr.read()
            self.wait(timeout)
        finally:
            timer.cancel()
        return printed

    def __enter__(self) -> Process:
        return self

    def __exit__(self, *_: object) -> None:
        self.stdin.close()
        self.wait()
        self.stdout.close()
        self.stderr.close()


def start(
    args: Sequence[str], environment: Mapping[str, str], cwd: Path | None = None, *, has_input: bool = False
) -> Process:
    """Start `extcli` with these arguments and exactly this environment, by default in the current directory.

    It reads what is written to `stdin` if it `has_input`, and otherwise nothing.
    """
    wire = socket.socket(socket.AF_UNIX)
    wire.connect(_address())
    stdin_read, stdin_write = os.pipe()
    stdout_read, stdout_write = os.pipe()
    stderr_read, stderr_write = os.pipe()
    call = json.dumps([list(map(str, args)), str(cwd or os.getcwd()), dict(environment), False]).encode()
    streams = [stdin_read, stdout_write, stderr_write]
    socket.send_fds(wire, [len(call).to_bytes(_LENGTH, "big")], streams)
    wire.sendall(call)
    for each in streams:
        os.close(each)
    pid = int.from_bytes(wire.recv(_LENGTH), "big")
    stdin = os.fdopen(stdin_write, "w", buffering=1)
    if not has_input:
        stdin.close()
    return Process(wire, pid, stdin, open(stdout_read), open(stderr_read))


def put_program(folder: Path) -> Path:
    """Put a program `extcli` into a folder, and return its path."""
    program = folder / "extcli"
    addresses = {"service": _address(), "command": _address("every command")}
    program.write_text(_SHELL_PROGRAM.format(python=sys.executable, **addresses))
    program.chmod(0o755)
    return program


@cache
def _address(*imported: str) -> bytes:
    """Start a forking process, once per test process, and return its address. It ends with the test process."""
    process = subprocess.Popen(
        [sys.executable, __file__, *imported], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=_clean_environment()
    )
    atexit.register(process.kill)
    assert process.stdout is not None
    return process.stdout.readline().rstrip(b"\n").replace(b"@", b"\0", 1)


def _clean_environment() -> dict[str, str]:
    """Return the environment without our variables, and with buffers as a user has them."""
    return {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("EXTCLI_") and name != "PYTHONUNBUFFERED"
    }


def _import_all() -> None:
    """Import what a command would import when it runs."""
    from extcli.app import NOUNS, module_of

    for noun in NOUNS:
        if noun != "serve":
            import_module(module_of(noun))
    source = Path(import_module("extcli").__file__ or "").parent
    for path in source.rglob("[a-z]*.py"):
        folder, *rest = path.relative_to(source).with_suffix("").parts
        if rest and folder != "commands" and path.stem != "windows":  # that runs only there
            import_module(".".join(("extcli", folder, *rest)))
    for library in ("httpx", "ijson", "jwt", "msgspec", "rich.table", "rich.console", "rich.progress", "tomlkit"):
        import_module(library)
    import_module("websockets.asyncio.client")
    import_module("websockets.sync.client")


def _serve() -> None:
    """Fork a program for each connection, and send its process id and later its exit code."""
    from extcli.main import main

    if len(sys.argv) > 1:
        _import_all()
    else:
        for name in ("extcli.commands.serve", "extcli.running.exec_run", "emulator.process.run", "uvloop"):
            import_module(name)

    listener = socket.socket(socket.AF_UNIX)
    listener.bind(b"\0extcli-tests-%d" % os.getpid())
    listener.listen(100)
    ends_read, ends_write = os.pipe()
    os.set_blocking(ends_write, False)
    signal.set_wakeup_fd(ends_write)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    print(f"@extcli-tests-{os.getpid()}", flush=True)  # noqa: T201
    running: dict[int, socket.socket] = {}
    with selectors.DefaultSelector() as selector:
        for each in (listener, ends_read, sys.stdin):
            selector.register(each, selectors.EVENT_READ)
        while True:
            for key, _ in selector.select():
                if key.fileobj is listener:
                    wire, _ = listener.accept()
                    pid = os.fork()
                    if pid == 0:
                        selector.close()
                        listener.close()
                        os.close(ends_read)
                        for other in running.values():
                            other.close()
                        signal.set_wakeup_fd(-1)
                        os.close(ends_write)
                        _run(wire, main)
                    running[pid] = wire
                elif key.fileobj is sys.stdin:
                    return  # the tests ended
                else:
                    os.read(ends_read, 1024)
                    _report_ends(running)


def _report_ends(running: dict[int, socket.socket]) -> None:
    while running:
        pid, status = os.waitpid(-1, os.WNOHANG)
        if pid == 0:
            return
        with suppress(OSError), running.pop(pid) as wire:
            wire.sendall(os.waitstatus_to_exitcode(status).to_bytes(_LENGTH, "big", signed=True))


def _run(wire: socket.socket, main: Any) -> None:
    """Run the program in this process, with the caller's streams, and end."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    os.setsid()  # so that tests find the processes that it leaves
    head, streams, _, _ = socket.recv_fds(wire, _LENGTH, 3)
    call = b""
    while len(call) < int.from_bytes(head, "big"):
        call += wire.recv(1 << 16)
    args, folder, environment, ends_with_caller = json.loads(call)
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    sys.argv = [str(PROGRAM), *args]
    wire.sendall(os.getpid().to_bytes(_LENGTH, "big"))
    if ends_with_caller:
        threading.Thread(target=_end_with_caller, args=(wire,), daemon=True).start()
    else:
        wire.close()
    code = main(args)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def _end_with_caller(wire: socket.socket) -> None:
    wire.recv(1)
    os._exit(1)


if __name__ == "__main__":
    _serve()
