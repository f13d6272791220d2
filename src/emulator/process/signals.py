"""Handles the signals that stop and reload the service."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

STOPS: tuple[signal.Signals, ...] = (signal.SIGTERM, signal.SIGINT)
HANGUPS: tuple[signal.Signals, ...] = ()
"""Signals that reload the extensions. A closing terminal sends SIGHUP too. Windows has none."""
if sys.platform == "win32":
    STOPS += (signal.SIGBREAK,)  # Ctrl-Break, and a console that closes
else:
    HANGUPS += (signal.SIGHUP,)


class SignalHandler:
    """Catches signals from construction to the end of the process, so that they never kill it.

    A signal calls the callback, or is remembered until there is one.
    """

    def __init__(self, *numbers: signal.Signals) -> None:
        self._pending = False
        self._callback: Callable[[], object] | None = None
        for number in numbers:
            signal.signal(number, self._handle)
        _unblock(numbers)

    def set_callback(self, callback: Callable[[], object]) -> None:
        """Call `callback` at each signal from now on; at once if one is pending."""
        self._callback = callback
        if self._pending:
            self._pending = False
            callback()

    def remove_callback(self) -> None:
        """Remember later signals instead of calling it."""
        self._callback = None

    @contextmanager
    def diverted(self, callback: Callable[[], object]) -> Iterator[None]:
        """Call `callback` instead during the block; at once if a signal is pending."""
        before, self._callback = self._callback, None
        self.set_callback(callback)
        try:
            yield
        finally:
            self._callback = before

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self._callback is None:
            self._pending = True
        else:
            self._callback()


@contextmanager
def hangups_blocked() -> Iterator[None]:
    """Block hangups in this process and its new children, which inherit that until they install a `SignalHandler`.

    A closing terminal signals all of its processes at once; a child without a handler would die.
    """
    if sys.platform != "win32":
        signal.pthread_sigmask(signal.SIG_BLOCK, HANGUPS)
    try:
        yield
    finally:
        _unblock(HANGUPS)


def ignore_signals() -> None:
    """Ignore all signals from now on. Python would restore the defaults at exit, and a late signal would kill it."""
    if sys.platform != "win32":
        # Python reports a signal that comes before it is ignored, but whose handler would run after that.
        signal.pthread_sigmask(signal.SIG_BLOCK, (*STOPS, *HANGUPS))
    for number in (*STOPS, *HANGUPS):
        signal.signal(number, signal.SIG_IGN)


def stop_this_process() -> None:
    """Stop this process as SIGTERM from outside does. Call it in any thread."""
    if sys.platform == "win32":
        signal.raise_signal(signal.SIGTERM)  # `os.kill` would end the process at once
    else:
        os.kill(os.getpid(), signal.SIGTERM)


def _unblock(numbers: tuple[signal.Signals, ...]) -> None:
    if sys.platform != "win32":
        signal.pthread_sigmask(signal.SIG_UNBLOCK, numbers)
