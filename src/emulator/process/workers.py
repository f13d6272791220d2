"""Runs several processes on one port: starts them together, replaces those that die, stops them together."""

from __future__ import annotations

import logging
import multiprocessing
import os
import signal
import socket
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from itertools import product
from multiprocessing.connection import wait
from multiprocessing.context import SpawnProcess
from types import FrameType
from typing import TYPE_CHECKING, Any, TypeAlias

from emulator.process.signals import HANGUPS, STOPS, SignalHandler, hangups_blocked, ignore_signals, stop_this_process

if TYPE_CHECKING:
    if sys.platform == "win32":
        from multiprocessing.connection import PipeConnection as Connection
    else:
        from multiprocessing.connection import Connection

_log = logging.getLogger("emulator")
_STOP_TIMEOUT = 4.5
"""Seconds until workers that have not stopped are killed."""
_PAUSE = 0.2
"""Seconds after which a wait looks whether to stop: Python resumes a wait that a signal interrupts."""
_MAX_TRIES = 5
"""Attempts to replace a worker. The machine may be short of memory for a while."""

Pipe: TypeAlias = "Connection[Any, Any]"
Work = Callable[[socket.socket, Pipe], None]
"""The work of a worker: serve the listening socket, and send one message to the pipe once it serves."""


class Workers:
    """A fixed number of processes that share a listening socket, which spreads the connections."""

    def __init__(self, work: Callable[[], Work], listener: socket.socket, count: int) -> None:
        self._work = work
        self._listener = listener
        self._count = count
        self._spawn = multiprocessing.get_context("spawn")
        self._processes: list[SpawnProcess] = []
        self._stopping = False
        self._hangup_reader, self._hangup_writer = socket.socketpair()
        for end in (self._hangup_reader, self._hangup_writer):
            end.setblocking(False)

    def run(self, started: Callable[[], None], hangups: SignalHandler, on_hangup: Callable[[], bool]) -> bool:
        """Keep the workers running until SIGTERM or SIGINT; return False if one cannot be started.

        Calls `started` once every worker serves. Calls `on_hangup` at a hangup, and forwards it if that returns True.
        """
        hangups.set_callback(self._note_hangup)
        for number in STOPS:
            signal.signal(number, self._stop)
        pipes = [self._start() for _ in range(self._count)]
        serving = all([self._wait_until_serving(pipe) for pipe in pipes])
        if serving and not self._stopping:
            started()
            serving = self._supervise(on_hangup)
        self._stop_workers()
        ignore_signals()
        return serving or self._stopping

    def _start(self) -> Pipe:
        """Start one worker; return the pipe to which it sends a message once it serves."""
        receiver, sender = self._spawn.Pipe(duplex=False)
        process = self._spawn.Process(target=self._work(), args=(self._listener, sender), daemon=True)
        with hangups_blocked():
            process.start()
        sender.close()
        self._processes.append(process)
        return receiver

    def _wait_until_serving(self, pipe: Pipe) -> bool:
        """Wait until the worker at the pipe serves; return False if it ended before, or at a stop."""
        try:
            while not self._stopping:
                if pipe.poll(_PAUSE):
                    return bool(pipe.recv())
        except EOFError:
            pass
        return False

    def _supervise(self, on_hangup: Callable[[], bool]) -> bool:
        while not self._stopping:
            wait([self._hangup_reader, *(process.sentinel for process in self._processes)], timeout=_PAUSE)
            if self._take_hangup() and on_hangup():
                self._forward_hangup()
            for process in self._dead_workers():
                _log.error("worker %s ended with %s and is replaced", process.pid, process.exitcode)
                self._processes.remove(process)
                if not self._replace():
                    _log.error("no replacement started in %s tries; stopping", _MAX_TRIES)
                    return False
        return True

    def _replace(self) -> bool:
        """Start a worker, again if it ends before it serves; return False after `_MAX_TRIES`."""
        for _ in range(_MAX_TRIES):
            if self._wait_until_serving(self._start()) or self._stopping:
                return True
            process = self._processes.pop()
            process.join()
            _log.error("its replacement %s ended with %s before it served", process.pid, process.exitcode)
        return False

    def _dead_workers(self) -> list[SpawnProcess]:
        return [] if self._stopping else [process for process in self._processes if not process.is_alive()]

    def _note_hangup(self) -> None:
        with suppress(BlockingIOError):  # the buffer is full of unread hangups
            self._hangup_writer.send(b"!")

    def _take_hangup(self) -> bool:
        try:
            return bool(self._hangup_reader.recv(4096))
        except BlockingIOError:
            return False

    def _forward_hangup(self) -> None:
        for process, number in product(self._processes, HANGUPS):
            if process.pid:
                with suppress(ProcessLookupError):
                    os.kill(process.pid, number)

    def _stop(self, number: int, frame: FrameType | None) -> None:
        self._stopping = True

    def _stop_workers(self) -> None:
        for process in self._processes:
            process.terminate()
        deadline = threading.Timer(_STOP_TIMEOUT, self._kill)
        deadline.start()
        for process in self._processes:
            process.join()
        deadline.cancel()

    def _kill(self) -> None:
        for process in self._processes:
            process.kill()


def report_serving(parent: Pipe) -> None:
    """Tell the parent that this worker serves."""
    with suppress(BrokenPipeError):  # the parent is stopping or gone
        parent.send(True)


def exit_with_parent() -> None:
    """Stop this worker once its parent process is gone, even if killed, so that the port becomes free."""
    parent = multiprocessing.parent_process()
    assert parent is not None, "only a worker has a parent"

    def wait_and_stop() -> None:
        parent.join()
        stop_this_process()

    threading.Thread(target=wait_and_stop, daemon=True).start()
