"""Processes on Windows: the supervisor of `extcli exec`, and the file by which `extcli stop` reaches a service.

There are no process groups and no signals between processes. A job object takes their place: this process joins one,
so everything that the command starts is in it too, and ends with this process, however that ends.
"""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from math import inf
from pathlib import Path
from typing import IO, Final

from extcli import clock
from extcli.running.failure_report import Log
from extcli.running.startup import GRACE, READY_INTERVAL, STOP_TIMEOUT, CannotRun, Readiness, notes_of_death

assert sys.platform == "win32", "`extcli.running.supervisor` and signals are for this system"

_SERVICE: Final = [sys.executable, "-P", "-c", "from extcli.running.windows import serve; serve()"]
_ENDED_BY_CTRL_C: Final = 0xC000013A
_INTERVAL: Final = 0.05
"""Seconds between two looks at the processes. Windows notices Ctrl-C only between two waits."""


class Supervisor:
    """One service and one command. The interface is the one of `extcli.running.supervisor`."""

    def __init__(self, log: Log, note: Callable[[str], object]) -> None:
        self._log = log
        self._note = note
        self._readiness = Readiness(note)
        self._endings: list[int] = []
        """The signals so far that ask for the end."""
        self._service: subprocess.Popen[bytes] | None = None
        self._readers: list[threading.Thread] = []
        self.has_lost_service = False
        """Whether the service died while the command ran."""
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGBREAK):
            signal.signal(number, lambda caught, _: self._endings.append(caught))

    @property
    def signaled(self) -> int:
        """The first signal that asked for the end, or 0."""
        return self._endings[0] if self._endings else 0

    def start_service(self, serve: Callable[[int], int], at_end: Callable[[], object]) -> None:
        """Start the service in a new process, which Ctrl-C does not reach. Both functions are called there."""
        self._service = service = subprocess.Popen(
            _SERVICE,
            bufsize=0,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            creationflags=subprocess.CREATE_NEW_PROCESS_GROUP,
        )
        assert service.stdin is not None
        assert service.stdout is not None
        assert service.stderr is not None
        with suppress(OSError):  # it has ended
            service.stdin.write(pickle.dumps((serve, at_end)))
        self._read(service.stdout, self._readiness.printed)
        self._read(service.stderr, self._log.write)
        _join_job()  # after the start of the service, which so is not in it

    def wait_until_ready(self) -> str:
        """Wait until the service is ready, and return its URL; empty if it ended, or a signal asks for the end."""
        while self._service_process().poll() is None and not self._endings:
            if self._readiness.url and self._readiness.is_reached():
                return self._readiness.url
            clock.sleep(READY_INTERVAL)
        return ""

    def run_command(self, args: Sequence[str], environment: Mapping[str, str]) -> int:
        """Run the command and return its exit code; 128+n if signal n ended it. Raises `CannotRun`.

        Ctrl-C at the console reaches the command by itself, so only a second one ends it here. If the service dies
        meanwhile, the command is ended after a time of grace.
        """
        try:
            command = subprocess.Popen(_command_with_path(args, environment), env=dict(environment))
        except OSError as error:
            raise CannotRun(args[0], error) from None
        kill_at: float | None = None
        while (code := _wait(command)) is None:
            if len(self._endings) > 1 or signal.SIGTERM in self._endings:
                command.kill()
                command.wait()
                return 128 + self.signaled
            if kill_at is not None and clock.elapsed() > kill_at:
                command.kill()
            if kill_at is None and (served := self._service_process().poll()) is not None:
                self._join_readers()
                self.has_lost_service, kill_at = True, clock.elapsed() + GRACE
                for each in notes_of_death(served, self._log):
                    self._note(each)
        return 128 + signal.SIGINT if code == _ENDED_BY_CTRL_C else code

    def stop_service(self) -> int:
        """Stop the service, and return its exit code."""
        service = self._service_process()
        assert service.stdin is not None
        service.stdin.close()  # its lifeline
        deadline = clock.elapsed() + STOP_TIMEOUT
        while (code := _wait(service)) is None:
            if clock.elapsed() > deadline:
                self._note(f"the service did not stop within {STOP_TIMEOUT:g} s, and is killed")
                service.kill()
                deadline = inf  # its end may still take a while
        self._join_readers()
        return code

    def _service_process(self) -> subprocess.Popen[bytes]:
        assert self._service is not None, "the service has not been started"
        return self._service

    def _read(self, pipe: IO[bytes], take: Callable[[bytes], object]) -> None:
        """Pass the output of a pipe to `take`, in a thread, until the pipe ends."""

        def read() -> None:
            while data := os.read(pipe.fileno(), 1 << 16):
                take(data)

        reader = threading.Thread(target=read, daemon=True)
        reader.start()
        self._readers.append(reader)

    def _join_readers(self) -> None:
        for each in self._readers:
            each.join(STOP_TIMEOUT)


def serve() -> None:
    """Run the service that the process which started this one has sent, and exit with its code."""
    run, at_end = pickle.load(sys.stdin.buffer)  # only `Supervisor.start_service` writes there
    try:
        code = run(sys.stdin.fileno())
    finally:
        at_end()
    sys.exit(code)


def _command_with_path(args: Sequence[str], environment: Mapping[str, str]) -> list[str]:
    """Return the command with the path of its program, which Windows would look for without `PATHEXT`: `npm.cmd`."""
    from shutil import which

    return [which(args[0], path=environment.get("PATH")) or args[0], *args[1:]]


def _wait(process: subprocess.Popen[bytes]) -> int | None:
    """Wait briefly for the process to end; return its exit code, or `None` if it still runs."""
    with suppress(subprocess.TimeoutExpired):
        return process.wait(_INTERVAL)
    return None


def _join_job() -> None:
    """Join a new job that ends all its processes when its last handle, this process's, is closed."""
    import ctypes
    from ctypes import wintypes

    class Limits(ctypes.Structure):
        """JOBOBJECT_EXTENDED_LIMIT_INFORMATION; only the flags are set."""

        _fields_ = [
            ("times", wintypes.LARGE_INTEGER * 2),
            ("flags", wintypes.DWORD),
            ("sets", ctypes.c_size_t * 2),
            ("active", wintypes.DWORD),
            ("affinity", ctypes.c_size_t),
            ("priorities", wintypes.DWORD * 2),
            ("counters", ctypes.c_uint64 * 6),
            ("memory", ctypes.c_size_t * 4),
        ]

    kernel = ctypes.WinDLL("kernel32", use_last_error=True)
    kernel.CreateJobObjectW.restype = kernel.GetCurrentProcess.restype = wintypes.HANDLE
    kernel.SetInformationJobObject.argtypes = [wintypes.HANDLE, ctypes.c_int, ctypes.c_void_p, wintypes.DWORD]
    kernel.AssignProcessToJobObject.argtypes = [wintypes.HANDLE, wintypes.HANDLE]
    job, limits = kernel.CreateJobObjectW(None, None), Limits(flags=_KILL_ON_CLOSE)
    is_set = kernel.SetInformationJobObject(job, _EXTENDED_LIMITS, ctypes.byref(limits), ctypes.sizeof(limits))
    if not is_set or not kernel.AssignProcessToJobObject(job, kernel.GetCurrentProcess()):
        raise ctypes.WinError(ctypes.get_last_error())


_EXTENDED_LIMITS: Final = 9
_KILL_ON_CLOSE: Final = 0x2000


def stop_when_asked(request: Path) -> None:
    """Stop this process, as Ctrl-C does, when another process of the same user creates this file.

    A file in a folder that only the user can write to, because any user can connect to a named pipe.
    """
    request.unlink(missing_ok=True)

    def wait() -> None:
        while not request.exists():
            clock.sleep(_INTERVAL)
        request.unlink(missing_ok=True)
        signal.raise_signal(signal.SIGTERM)

    threading.Thread(target=wait, name="stop", daemon=True).start()
