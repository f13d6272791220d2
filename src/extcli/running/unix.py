"""The supervisor of `extcli exec` where processes have groups, and signals, and share a terminal."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from math import inf

from extcli import clock
from extcli.running.supervisor import GRACE_SECONDS, CommandNotStarted, ServiceLog, Supervisor

if sys.platform == "win32":
    raise ImportError("Windows has no process groups: use `extcli.running.windows`")

_END_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_CAUGHT_SIGNALS = (*_END_SIGNALS, signal.SIGCHLD, signal.SIGTSTP, signal.SIGCONT)


class UnixSupervisor(Supervisor):
    """A service in a fork of this process, and a command. Each has a process group of its own."""

    def __init__(self, log: ServiceLog, serve: Callable[[int], int], at_end: Callable[[], object]) -> None:
        """Start the service in a new process, where both functions are called."""
        super().__init__(log)
        self._command_pid = 0
        """The process id of the command and the id of its group; 0 before it starts."""
        self._exit_codes: dict[int, int] = {}
        """The exit codes of processes that have ended, by their ids."""
        self._terminal = -1
        with suppress(OSError):  # there is none
            self._terminal = os.open("/dev/tty", os.O_RDWR | os.O_CLOEXEC)
        self._wakeup, writer = os.pipe()
        for end in (self._wakeup, writer):
            os.set_blocking(end, False)
        signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
        # `nohup` ignores SIGHUP; the command inherits that.
        caught = [each for each in _CAUGHT_SIGNALS if each != signal.SIGHUP or signal.getsignal(each) != signal.SIG_IGN]
        for number in caught:
            signal.signal(number, self._on_signal)

        def run(lifeline: int) -> int:
            signal.set_wakeup_fd(-1)
            for number in caught:
                signal.signal(number, signal.SIG_DFL)
            return serve(lifeline)

        self._service_pid, self._lifeline, *outputs = _fork_service(run, at_end)
        self._start_readers(*outputs)

    def run_command(self, args: Sequence[str], environment: Mapping[str, str]) -> int:
        """Run the command and return its exit code, 128+n for a signal. Raises `CommandNotStarted`.

        If the service dies meanwhile, the command is ended: first by SIGTERM, then by SIGKILL.
        """

        def tell_service() -> None:  # before the command runs, or it might outlive a kill of this process
            self._kill_with_service(os.getpid())

        try:
            # It takes no lock, so that it is safe beside the threads that read what the service prints.
            process = subprocess.Popen(args, env=environment, process_group=0, close_fds=False, preexec_fn=tell_service)
        except OSError as error:
            raise CommandNotStarted(args[0], error) from None
        self._command_pid = process.pid
        if self._end_signals:  # while it started
            self._signal_command(self.first_signal)
        kill_at = inf
        while process.pid not in self._exit_codes:
            self._wait_for_signal(None if kill_at == inf else max(kill_at - clock.elapsed(), 0))
            has_died = self._service_pid in self._exit_codes and process.pid not in self._exit_codes
            if has_died and not self.has_lost_service:
                self._on_lost_service(self._exit_codes[self._service_pid])
                self._signal_command(signal.SIGTERM, signal.SIGCONT)
                kill_at = clock.elapsed() + GRACE_SECONDS
            elif clock.elapsed() >= kill_at:
                self._signal_command(signal.SIGKILL)
                kill_at = inf
        process.returncode = self._exit_codes[process.pid]  # it is waited for
        self._pass_terminal(process.pid, os.getpgrp())
        # Processes that the command left behind may run until the service has stopped.
        self._signal_command(signal.SIGTERM)
        return process.returncode

    def stop_service(self) -> int:
        """Stop the service, end what the command left behind, and return the service's exit code."""
        code = super().stop_service()
        self._signal_command(signal.SIGKILL)
        return code

    def _service_exit_code(self, seconds: float) -> int | None:
        if self._service_pid not in self._exit_codes:
            self._wait_for_signal(seconds)
        return self._exit_codes.get(self._service_pid)

    def _kill_with_service(self, group: int) -> None:
        """Make the service also kill this process group when this process is gone; 0 means no group."""
        with suppress(OSError):  # the service has ended
            os.write(self._lifeline, b"%d\n" % group)

    def _close_lifeline(self) -> None:
        self._kill_with_service(0)
        os.close(self._lifeline)

    def _kill_service(self) -> None:
        with suppress(ProcessLookupError):
            os.kill(self._service_pid, signal.SIGKILL)

    def _signal_command(self, *numbers: int) -> None:
        """Send signals to the command's process group, if any process of it is left."""
        with suppress(OSError):
            for number in numbers if self._command_pid else ():
                os.killpg(self._command_pid, number)

    def _wait_for_signal(self, seconds: float | None) -> None:
        """Wait for a signal, by default without limit, and note which processes have ended or were stopped."""
        select.select([self._wakeup], [], [], seconds)
        with suppress(BlockingIOError):
            os.read(self._wakeup, 4096)
        with suppress(ChildProcessError):  # there is none
            while (found := os.waitpid(-1, os.WNOHANG | os.WUNTRACED))[0]:
                pid, status = found
                if not os.WIFSTOPPED(status):
                    code = os.waitstatus_to_exitcode(status)
                    self._exit_codes[pid] = code if code >= 0 else 128 - code
                elif pid == self._command_pid:
                    self._on_stopped_command(os.WSTOPSIG(status))

    def _on_signal(self, number: int, _: object) -> None:
        if number in _END_SIGNALS:  # the first one goes to the command, the second one kills it
            self._end_signals.append(number)
            self._signal_command(number if len(self._end_signals) == 1 else signal.SIGKILL, signal.SIGCONT)
        elif number == signal.SIGTSTP:  # Ctrl-Z stops the command along with this process
            self._signal_command(signal.SIGTSTP)
            os.kill(os.getpid(), signal.SIGSTOP)
        elif number == signal.SIGCONT:
            self._signal_command(signal.SIGCONT)

    def _on_stopped_command(self, number: int) -> None:
        """Lend the terminal to a command that was stopped because it needs one.

        After Ctrl-Z, stop this process as well.
        """
        own = os.getpgrp()
        if number in (signal.SIGTTIN, signal.SIGTTOU) and self._pass_terminal(own, self._command_pid):
            self._signal_command(signal.SIGCONT)
        elif self._pass_terminal(self._command_pid, own) or (self._terminal >= 0 and number == signal.SIGTTIN):
            os.killpg(own, signal.SIGSTOP)  # the whole job, as the terminal would

    def _pass_terminal(self, holder: int, group: int) -> bool:
        """Give the terminal to a process group, if the holder, another group, has it. Return whether it was given."""
        # The system stops a process that changes the terminal from the background.
        before = signal.signal(signal.SIGTTOU, signal.SIG_IGN)
        try:
            if os.tcgetpgrp(self._terminal) != holder:
                return False
            os.tcsetpgrp(self._terminal, group)
            return True
        except OSError:  # there is no terminal, or the group has ended
            return False
        finally:
            signal.signal(signal.SIGTTOU, before)


def _fork_service(serve: Callable[[int], int], at_end: Callable[[], object]) -> tuple[int, int, int, int]:
    """Fork, and call `serve` with the read end of a lifeline in the new process; it returns the exit code.

    Return the process id, the write end of the lifeline, and the read ends of its output and its log. A fork, because
    this process has already imported half of what the service needs. `at_end` is called in the new process when the
    service has ended, even if this process was killed.
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
            os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
            os.dup2(stdout_writer, 1)
            os.dup2(stderr_writer, 2)
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
    return pid, lifeline, stdout, stderr
