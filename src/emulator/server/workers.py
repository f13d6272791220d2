"""Several processes on one port and one store of data: started together, replaced when one dies, stopped together."""

from __future__ import annotations

import logging
import multiprocessing
import os
import signal
import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from itertools import product
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from types import FrameType

from emulator.server.signals import HANGUPS, STOPS, Signals, hangups_held, ignore_signals

_log = logging.getLogger("emulator")
_STOP_WITHIN = 4.5
"""Seconds for all workers together."""
_TRIES = 5
"""How often a worker is started in the place of one that ended. The machine may be short of memory for a while."""

Work = Callable[[socket.socket, Connection], None]
"""What a worker does: serve the listening socket, and send one message down the pipe when it serves."""


class Workers:
    """A fixed number of processes doing the same work. Their shared socket spreads the connections."""

    def __init__(self, work: Callable[[], Work], listener: socket.socket, count: int) -> None:
        self._work = work
        self._listener = listener
        self._count = count
        self._spawn = multiprocessing.get_context("spawn")
        self._processes: list[SpawnProcess] = []
        self._stopping = False
        self._hung_up, self._hangup = socket.socketpair()
        for end in (self._hung_up, self._hangup):
            end.setblocking(False)

    def run(self, started: Callable[[], None], hangups: Signals, passes_on: Callable[[], bool]) -> bool:
        """Keep the workers running until SIGTERM or SIGINT; returns False if that could not be done.

        `started` is called once, when every worker serves. After a hangup the workers get one too, if `passes_on`.
        """
        hangups.then(self._note_hangup)
        for number in STOPS:
            signal.signal(number, self._stop)
        came_up = all([self._is_up(each) for each in [self._start() for _ in range(self._count)]])
        if came_up and not self._stopping:
            started()
            came_up = self._tend(passes_on)
        self._end()
        ignore_signals()
        return came_up or self._stopping

    def _start(self) -> Connection:
        """Start one worker; it will say down this pipe when it serves."""
        theirs, ours = self._spawn.Pipe(duplex=False)
        process = self._spawn.Process(target=self._work(), args=(self._listener, ours), daemon=True)
        with hangups_held():
            process.start()
        ours.close()
        self._processes.append(process)
        return theirs

    def _is_up(self, pipe: Connection) -> bool:
        """Wait until the worker behind the pipe serves; false if it ended before."""
        try:
            return bool(pipe.recv())
        except EOFError:
            return False

    def _tend(self, passes_on: Callable[[], bool]) -> bool:
        while not self._stopping:
            wait([self._hung_up, *(process.sentinel for process in self._processes)], timeout=0.5)
            if self._has_hung_up() and passes_on():
                self._pass_hangup_on()
            for process in self._dead():
                _log.error("worker %s ended with %s and is replaced", process.pid, process.exitcode)
                self._processes.remove(process)
                if not self._replaced():
                    _log.error("no replacement came up in %s tries; stopping", _TRIES)
                    return False
        return True

    def _replaced(self) -> bool:
        """Start one worker more, again if it ends before it serves; the others go on meanwhile."""
        for _ in range(_TRIES):
            if self._is_up(self._start()) or self._stopping:
                return True
            process = self._processes.pop()
            process.join()
            _log.error("its replacement %s ended with %s before it served", process.pid, process.exitcode)
        return False

    def _dead(self) -> list[SpawnProcess]:
        """Workers that ended though nobody told them to."""
        return [] if self._stopping else [each for each in self._processes if not each.is_alive()]

    def _note_hangup(self) -> None:
        with suppress(BlockingIOError):  # there are enough of them already
            self._hangup.send(b"!")

    def _has_hung_up(self) -> bool:
        try:
            return bool(self._hung_up.recv(4096))
        except BlockingIOError:
            return False

    def _pass_hangup_on(self) -> None:
        for process, number in product(self._processes, HANGUPS):
            if process.pid:
                with suppress(ProcessLookupError):
                    os.kill(process.pid, number)

    def _stop(self, number: int, frame: FrameType | None) -> None:
        self._stopping = True

    def _end(self) -> None:
        for process in self._processes:
            process.terminate()
        too_late = threading.Timer(_STOP_WITHIN, self._kill)
        too_late.start()
        for process in self._processes:
            process.join()
        too_late.cancel()

    def _kill(self) -> None:
        for process in self._processes:
            process.kill()


def exit_with_parent() -> None:
    """Have this worker stop when the process that started it is gone, killed or not, and free the port."""
    parent = multiprocessing.parent_process()
    assert parent is not None, "only a worker has a parent"

    def wait_and_end() -> None:
        parent.join()
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=wait_and_end, daemon=True).start()
