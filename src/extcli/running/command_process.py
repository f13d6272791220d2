"""A command as the leader of its own process group, which can be signaled and ended as a whole."""

from __future__ import annotations

import errno
import os
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress

from extcli.errors import CliError

_PR_SET_PDEATHSIG = 1
_NOT_FOUND, _NOT_EXECUTABLE = 127, 126
_CHANGED_BY_PYTHON = ("SIGPIPE", "SIGXFSZ", "SIGTTOU")
"""Signals that this process ignores; the command must not."""


class CannotRun(CliError):
    """The command was not started. `exit_code` is 127 if it was not found, else 126, as in a shell."""

    def __init__(self, name: str, error: OSError) -> None:
        absent = error.errno in (errno.ENOENT, errno.ENOTDIR)
        super().__init__(f"{name}: {'command not found' if absent else error.strerror}")
        self.exit_code = _NOT_FOUND if absent else _NOT_EXECUTABLE  # type: ignore[assignment]


class CommandProcess:
    """A running command."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        """Also the id of its process group."""
        self.exit_code: int | None = None
        """The exit code, or 128+n for a signal; `None` while it runs."""

    @classmethod
    def start(
        cls, args: Sequence[str], environment: Mapping[str, str], prepare: Callable[[int], object]
    ) -> CommandProcess:
        """Start a command. `prepare` is called with its process id, in the new process. Raises `CannotRun`.

        On Linux the system kills the command when this process ends.
        """
        set_death_signal = _death_signal()
        reader, writer = os.pipe()
        parent, pid = os.getpid(), os.fork()
        if pid == 0:
            try:
                os.setpgid(0, 0)
                prepare(os.getpid())
                for name in _CHANGED_BY_PYTHON:
                    signal.signal(getattr(signal, name), signal.SIG_DFL)
                set_death_signal(signal.SIGKILL)
                if os.getppid() == parent:
                    os.execvpe(args[0], list(args), dict(environment))
            except OSError as error:
                os.write(writer, str(error.errno).encode())
            finally:
                os._exit(_NOT_FOUND)
        os.close(writer)
        with suppress(OSError):
            os.setpgid(pid, pid)  # in both processes: neither may go on before it is done
        with open(reader, "rb") as failures:
            if failure := failures.read():
                os.waitpid(pid, 0)
                raise CannotRun(args[0], OSError(int(failure), os.strerror(int(failure))))
        return cls(pid)

    def poll(self) -> int:
        """Note whether the command has ended. If it was stopped, return the signal that did that, else 0."""
        if self.exit_code is not None:
            return 0
        pid, status = os.waitpid(self.pid, os.WNOHANG | os.WUNTRACED)
        if pid and os.WIFSTOPPED(status):
            return os.WSTOPSIG(status)
        if pid:
            self.exit_code = exit_code_of(status)
        return 0

    def signal(self, number: int) -> None:
        """Send a signal to the whole group, if any of it is left."""
        with suppress(OSError):
            os.killpg(self.pid, number)


def exit_code_of(status: int) -> int:
    """Return the exit code for a status of `waitpid`: 128+n for a signal."""
    code = os.waitstatus_to_exitcode(status)
    return code if code >= 0 else 128 - code


def _death_signal() -> Callable[[int], object]:
    """Return a function that makes the system signal this process when its parent ends. Elsewhere it does nothing."""
    if sys.platform == "linux":
        with suppress(ImportError, OSError, AttributeError):
            import ctypes

            prctl = ctypes.CDLL(None).prctl
            return lambda number: prctl(_PR_SET_PDEATHSIG, int(number), 0, 0, 0)
    return lambda number: None
