"""The service as a child of this process, on a lifeline: it stops when this process ends, however that happens."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from contextlib import suppress

from extcli.running.command_process import exit_code_of


class ServiceProcess:
    """A service that this process has started."""

    def __init__(self, pid: int, stdout: int, stderr: int, lifeline: int) -> None:
        self.pid = pid
        self.stdout = stdout
        """The read end of its standard output."""
        self.stderr = stderr
        """The read end of its log."""
        self.exit_code: int | None = None
        """The exit code, or 128+n for a signal; `None` while it runs."""
        self._lifeline = lifeline

    @classmethod
    def start(cls, serve: Callable[[int], int], at_end: Callable[[], object]) -> ServiceProcess:
        """Fork, and call `serve` with the lifeline's read end in the new process; it returns the exit code.

        A fork, because this process has already imported half of what the service needs. `at_end` is called in the
        new process when the service has ended, even if this process was killed.
        """
        stdout, stdout_writer = os.pipe()
        stderr, stderr_writer = os.pipe()
        lifeline_reader, lifeline = os.pipe()
        pid = os.fork()
        if pid == 0:
            code = 1
            try:
                os.setpgid(0, 0)  # Ctrl-C at the terminal is for the command
                for each in (stdout, stderr, lifeline):
                    os.close(each)
                os.dup2(stdout_writer, 1)
                os.dup2(stderr_writer, 2)
                with open(os.devnull, "rb") as nothing:
                    os.dup2(nothing.fileno(), 0)
                code = serve(lifeline_reader)
            finally:
                with suppress(BaseException):
                    at_end()
                for stream in (sys.stdout, sys.stderr):
                    with suppress(OSError, ValueError):
                        stream.flush()
                os._exit(code)
        for each in (stdout_writer, stderr_writer, lifeline_reader):
            os.close(each)
        for each in (stdout, stderr):
            os.set_blocking(each, False)
        return cls(pid, stdout, stderr, lifeline)

    def poll(self) -> None:
        """Note whether the service has ended."""
        if self.exit_code is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.exit_code = exit_code_of(status)

    def kills_with_it(self, group: int) -> None:
        """Let the service kill this process group, too, if this process is gone; 0 for none."""
        with suppress(OSError):  # the service has ended
            os.write(self._lifeline, b"%d\n" % group)

    def stop(self) -> None:
        """Ask the service to stop."""
        self.kills_with_it(0)
        os.close(self._lifeline)

    def kill(self) -> None:
        """End the service at once."""
        with suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)
