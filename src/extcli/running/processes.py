"""The processes of a run: the command, the service, the terminal that they share, and signals of this process."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress

from extcli.running.startup import CannotRun

if sys.platform == "win32":
    raise ImportError("there are no process groups: `extcli.running.windows` takes its place")

_PR_SET_PDEATHSIG = 1


class CommandProcess:
    """A running command, in a process group of its own."""

    def __init__(self, args: Sequence[str], environment: Mapping[str, str], prepare: Callable[[int], object]) -> None:
        """Start a command. `prepare` is called with its process id, in the new process. Raises `CannotRun`.

        On Linux the system kills the command when this process ends.
        """
        set_death_signal, parent = _death_signal(), os.getpid()

        def begin() -> None:
            prepare(os.getpid())
            signal.signal(signal.SIGTTOU, signal.SIG_DFL)  # which `Terminal` ignores
            set_death_signal(signal.SIGKILL)
            if os.getppid() != parent:
                os._exit(127)

        try:
            self._process = subprocess.Popen(args, env=environment, process_group=0, preexec_fn=begin, close_fds=False)
        except OSError as error:
            raise CannotRun(args[0], error) from None
        self.pid = self._process.pid
        """Also the id of its process group."""
        self.exit_code: int | None = None
        """The exit code, or 128+n for a signal; `None` while it runs."""

    def poll(self) -> int:
        """Note whether the command has ended. If it was stopped, return the signal that did that, otherwise 0."""
        if self.exit_code is not None:
            return 0
        pid, status = os.waitpid(self.pid, os.WNOHANG | os.WUNTRACED)
        if pid and os.WIFSTOPPED(status):
            return os.WSTOPSIG(status)
        if pid:
            self.exit_code = self._process.returncode = exit_code_of(status)
        return 0

    def signal(self, number: int) -> None:
        """Send a signal to the command's process group, if any process of it is left."""
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
        """Make the service also kill this process group when this process is gone; 0 means no group."""
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


class Terminal:
    """Lends the terminal from this process group to another one. Without a terminal, does nothing."""

    def __init__(self) -> None:
        self._file: int | None = None
        self._own = os.getpgrp()
        # The system stops a process that changes the terminal from the background.
        signal.signal(signal.SIGTTOU, signal.SIG_IGN)
        with suppress(OSError):  # there is none
            self._file = os.open("/dev/tty", os.O_RDWR | os.O_CLOEXEC)

    @property
    def exists(self) -> bool:
        """Whether there is a terminal."""
        return self._file is not None

    def lend(self, group: int) -> bool:
        """Give the terminal to a process group, if this process's group has it. Return whether it was given."""
        return self._group() == self._own and self._set_group(group)

    def take_back(self, group: int) -> bool:
        """Take the terminal back from a process group, if that group has it. Return whether it was taken."""
        return self._group() == group and self._set_group(self._own)

    def _group(self) -> int | None:
        if self._file is not None:
            with suppress(OSError):
                return os.tcgetpgrp(self._file)
        return None

    def _set_group(self, group: int) -> bool:
        if self._file is not None:
            with suppress(OSError):  # the group has ended
                os.tcsetpgrp(self._file, group)
                return True
        return False


ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_ALL = (*ENDING, signal.SIGCHLD, signal.SIGTSTP, signal.SIGCONT)


class Signals:
    """Catches the signals that end, stop or continue a command, and news of child processes."""

    def __init__(self) -> None:
        self.descriptor, self._writer = os.pipe()
        for end in (self.descriptor, self._writer):
            os.set_blocking(end, False)
        signal.set_wakeup_fd(self._writer, warn_on_full_buffer=False)
        # `nohup` ignores SIGHUP; the command inherits that.
        self._caught = [each for each in _ALL if each != signal.SIGHUP or signal.getsignal(each) != signal.SIG_IGN]
        for number in self._caught:
            signal.signal(number, lambda *_: None)

    def read(self) -> list[int]:
        """Return the numbers of the signals since the last call."""
        with suppress(BlockingIOError):
            return list(os.read(self.descriptor, 4096))
        return []

    def restore(self) -> None:
        """Restore the defaults, in a child process."""
        signal.set_wakeup_fd(-1)
        for number in self._caught:
            signal.signal(number, signal.SIG_DFL)
