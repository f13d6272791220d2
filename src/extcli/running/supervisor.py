"""Runs a command with a service: starts the service, then the command, passes signals on, and stops both."""

from __future__ import annotations

import os
import selectors
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from math import inf

from extcli import clock
from extcli.running.failure_report import Log
from extcli.running.processes import ENDING, CommandProcess, ServiceProcess, Signals, Terminal
from extcli.running.startup import GRACE, READY_INTERVAL, STOP_TIMEOUT, Readiness, notes_of_death

if sys.platform == "win32":
    raise ImportError("there are no process groups: `extcli.running.windows` takes its place")


class Supervisor:
    """One service and one command."""

    def __init__(self, log: Log, note: Callable[[str], object]) -> None:
        self._log = log
        self._note = note
        self._terminal = Terminal()
        self._signals = Signals()
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._signals.descriptor, selectors.EVENT_READ, self._on_signals)
        self._endings: list[int] = []
        """The signals so far that ask for the end."""
        self._readiness = Readiness(note)
        self._kill_at: float | None = None
        """When a command whose service has died is killed, by `clock.elapsed`."""
        self._service: ServiceProcess | None = None
        self._command: CommandProcess | None = None

    @property
    def has_lost_service(self) -> bool:
        """Whether the service died while the command ran."""
        return self._kill_at is not None

    @property
    def signaled(self) -> int:
        """The first signal that asked for the end, or 0."""
        return self._endings[0] if self._endings else 0

    def start_service(self, serve: Callable[[int], int], at_end: Callable[[], object]) -> None:
        """Start the service in a new process."""

        def run(lifeline: int) -> int:
            self._signals.restore()
            self._selector.close()
            return serve(lifeline)

        self._service = service = ServiceProcess.start(run, at_end)
        self._selector.register(service.stdout, selectors.EVENT_READ, self._on_output)
        self._selector.register(service.stderr, selectors.EVENT_READ, self._on_log)

    def wait_until_ready(self) -> str:
        """Wait until the service is ready, and return its URL; empty if it ended, or a signal asks for the end."""
        service, readiness = self._service_process(), self._readiness
        while service.exit_code is None and not self._endings:
            if not readiness.url:
                self._handle_events(None)
            elif readiness.is_reached():
                return readiness.url
            else:
                self._handle_events(READY_INTERVAL)
        return ""

    def run_command(self, args: Sequence[str], environment: Mapping[str, str]) -> int:
        """Run the command and return its exit code, 128+n for a signal. Raises `CannotRun`.

        If the service dies meanwhile, the command is ended: first by SIGTERM, then by SIGKILL.
        """
        service = self._service_process()

        def prepare(pid: int) -> None:
            self._signals.restore()
            service.kills_with_it(pid)

        self._command = command = CommandProcess(args, environment, prepare)
        while command.exit_code is None:
            self._handle_events(None if self._kill_at is None else max(self._kill_at - clock.elapsed(), 0))
            if self._kill_at is None and service.exit_code is not None and command.exit_code is None:
                self._on_dead_service(service.exit_code, command)
            elif self._kill_at is not None and clock.elapsed() >= self._kill_at:
                command.signal(signal.SIGKILL)
                self._kill_at += GRACE
        self._terminal.take_back(command.pid)
        # Processes that the command left behind may run until the service has stopped.
        command.signal(signal.SIGTERM)
        return command.exit_code

    def stop_service(self) -> int:
        """Stop the service, end what the command left behind, and return the service's exit code."""
        service = self._service_process()
        if service.exit_code is None:
            service.stop()
        deadline = clock.elapsed() + STOP_TIMEOUT
        while service.exit_code is None:
            self._handle_events(0.1)
            if clock.elapsed() > deadline:
                self._note(f"the service did not stop within {STOP_TIMEOUT:g} s, and is killed")
                service.kill()
                deadline = inf  # its end may still take a while
        if self._command is not None:
            self._command.signal(signal.SIGKILL)
        while self._on_log():
            pass
        return service.exit_code

    def _service_process(self) -> ServiceProcess:
        assert self._service is not None, "the service has not been started"
        return self._service

    def _handle_events(self, timeout: float | None) -> None:
        for key, _ in self._selector.select(timeout):
            key.data()

    def _on_output(self) -> None:
        service = self._service_process()
        data = os.read(service.stdout, 4096)
        self._readiness.printed(data)
        if not data:
            self._selector.unregister(service.stdout)

    def _on_log(self) -> bool:
        """Read the service's log; return whether there was something to read."""
        service = self._service_process()
        try:
            data = os.read(service.stderr, 1 << 16)
        except BlockingIOError:
            return False
        self._log.write(data)
        if not data and service.stderr in self._selector.get_map():
            self._selector.unregister(service.stderr)
        return bool(data)

    def _on_signals(self) -> None:
        for number in self._signals.read():
            if number in ENDING:
                self._on_ending(number)
            elif number == signal.SIGTSTP:  # Ctrl-Z stops the command along with this process
                if self._command is not None:
                    self._command.signal(signal.SIGTSTP)
                os.kill(os.getpid(), signal.SIGSTOP)
            elif number == signal.SIGCONT and self._command is not None:
                self._command.signal(signal.SIGCONT)
        self._service_process().poll()
        if self._command is not None and (number := self._command.poll()):
            self._on_stopped_command(self._command.pid, number)

    def _on_ending(self, number: int) -> None:
        """Pass the first signal on to the command; the second one kills it."""
        self._endings.append(number)
        if self._command is not None and self._command.exit_code is None:
            self._command.signal(number if len(self._endings) == 1 else signal.SIGKILL)
            self._command.signal(signal.SIGCONT)

    def _on_dead_service(self, code: int, command: CommandProcess) -> None:
        """Report that the service has died, and ask the command to end."""
        while self._on_log():
            pass
        for each in notes_of_death(code, self._log):
            self._note(each)
        self._kill_at = clock.elapsed() + GRACE
        command.signal(signal.SIGTERM)
        command.signal(signal.SIGCONT)

    def _on_stopped_command(self, group: int, number: int) -> None:
        """Lend the terminal to a command that was stopped because it needs one.

        After Ctrl-Z, stop this process as well.
        """
        if number in (signal.SIGTTIN, signal.SIGTTOU) and self._terminal.lend(group):
            os.killpg(group, signal.SIGCONT)
        elif self._terminal.take_back(group) or (self._terminal.exists and number == signal.SIGTTIN):
            os.killpg(os.getpgrp(), signal.SIGSTOP)  # the whole job, as the terminal would
