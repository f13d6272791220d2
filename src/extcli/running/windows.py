"""Processes on Windows: the supervisor of `extcli exec`, and the file by which `extcli stop` reaches a service.

There are no process groups and no signals between processes. A job object takes their place: this process joins one,
so everything that the command starts is in it too, and ends with this process, however that ends.
"""

from __future__ import annotations

import pickle
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from math import inf
from pathlib import Path
from typing import Final

from extcli import clock
from extcli.running.supervisor import GRACE_SECONDS, CommandNotStarted, ServiceLog, Supervisor

assert sys.platform == "win32", "only Windows can use this module: use `extcli.running.unix`"

_SERVICE_COMMAND: Final = [sys.executable, "-P", "-c", "from extcli.running.windows import run_service; run_service()"]
_ENDED_BY_CTRL_C: Final = 0xC000013A
_POLL_SECONDS: Final = 0.05
"""Seconds between two looks at the processes. Windows notices Ctrl-C only between two waits."""


class WindowsSupervisor(Supervisor):
    """A service in a new process, which Ctrl-C does not reach, and a command."""

    def __init__(self, log: ServiceLog, serve: Callable[[int], int], at_end: Callable[[], object]) -> None:
        """Start the service, where both functions are called."""
        super().__init__(log)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGBREAK):
            signal.signal(number, lambda caught, _: self._end_signals.append(caught))
        pipe, group = subprocess.PIPE, subprocess.CREATE_NEW_PROCESS_GROUP
        self._service = service = subprocess.Popen(
            _SERVICE_COMMAND, bufsize=0, stdin=pipe, stdout=pipe, stderr=pipe, creationflags=group
        )
        assert service.stdin is not None
        assert service.stdout is not None
        assert service.stderr is not None
        self._lifeline = service.stdin
        with suppress(OSError):  # it has ended
            service.stdin.write(pickle.dumps((serve, at_end)))
        self._start_readers(service.stdout.fileno(), service.stderr.fileno())
        _join_job_object()  # after the start of the service, which so is not in it

    def run_command(self, args: Sequence[str], environment: Mapping[str, str]) -> int:
        """Run the command and return its exit code; 128+n if signal n ended it. Raises `CommandNotStarted`.

        Ctrl-C at the console reaches the command by itself, so only a second one ends it here. If the service dies
        meanwhile, the command is ended after a time of grace.
        """
        from shutil import which

        # Windows would look for the program without `PATHEXT`, and not find `npm.cmd`.
        program = which(args[0], path=environment.get("PATH")) or args[0]
        try:
            command = subprocess.Popen([program, *args[1:]], env=dict(environment))
        except OSError as error:
            raise CommandNotStarted(args[0], error) from None
        kill_at = inf
        while (code := _wait_for_exit(command, _POLL_SECONDS)) is None:
            if len(self._end_signals) > 1 or signal.SIGTERM in self._end_signals:
                command.kill()
                command.wait()
                return 128 + self.first_signal
            if clock.elapsed() > kill_at:
                command.kill()
            served = self._service.poll()
            if served is not None and not self.has_lost_service:
                self._on_lost_service(served)
                kill_at = clock.elapsed() + GRACE_SECONDS
        return 128 + signal.SIGINT if code == _ENDED_BY_CTRL_C else code

    def _service_exit_code(self, seconds: float) -> int | None:
        return _wait_for_exit(self._service, seconds)

    def _close_lifeline(self) -> None:
        self._lifeline.close()

    def _kill_service(self) -> None:
        self._service.kill()


def run_service() -> None:
    """Run the service that the process which started this one has sent, and exit with its code."""
    run, at_end = pickle.load(sys.stdin.buffer)  # only `WindowsSupervisor` writes there
    try:
        code = run(sys.stdin.fileno())
    finally:
        at_end()
    sys.exit(code)


def _wait_for_exit(process: subprocess.Popen[bytes], seconds: float) -> int | None:
    """Wait briefly for the process to end; return its exit code, or `None` if it still runs."""
    with suppress(subprocess.TimeoutExpired):
        return process.wait(seconds)
    return None


def _join_job_object() -> None:
    """Join a new job that ends all its processes when its last handle, this process's, is closed."""
    import ctypes
    from ctypes import wintypes

    kernel = ctypes.WinDLL("kernel32", use_last_error=True)
    kernel.CreateJobObjectW.restype = kernel.GetCurrentProcess.restype = wintypes.HANDLE
    kernel.SetInformationJobObject.argtypes = [wintypes.HANDLE, ctypes.c_int, ctypes.c_void_p, wintypes.DWORD]
    kernel.AssignProcessToJobObject.argtypes = [wintypes.HANDLE, wintypes.HANDLE]
    job = kernel.CreateJobObjectW(None, None)
    # JOBOBJECT_EXTENDED_LIMIT_INFORMATION: two times, then the flags, and limits that are not set.
    limits = (ctypes.c_uint64 * (18 if sys.maxsize > 1 << 32 else 14))()
    limits[2] = _KILL_ON_CLOSE
    is_set = kernel.SetInformationJobObject(job, _EXTENDED_LIMITS, limits, ctypes.sizeof(limits))
    if not is_set or not kernel.AssignProcessToJobObject(job, kernel.GetCurrentProcess()):
        raise ctypes.WinError(ctypes.get_last_error())


_EXTENDED_LIMITS: Final = 9
_KILL_ON_CLOSE: Final = 0x2000


def stop_on_request_file(request: Path) -> None:
    """Stop this process, as Ctrl-C does, when another process of the same user creates this file.

    A file in a folder that only the user can write to, because any user can connect to a named pipe.
    """
    request.unlink(missing_ok=True)

    def wait() -> None:
        while not request.exists():
            clock.sleep(_POLL_SECONDS)
        request.unlink(missing_ok=True)
        signal.raise_signal(signal.SIGTERM)

    threading.Thread(target=wait, name="stop", daemon=True).start()
