"""Which signals the service listens to, and from when to when."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

STOPS = (signal.SIGTERM, signal.SIGINT)
HANGUPS: tuple[signal.Signals, ...] = () if sys.platform == "win32" else (signal.SIGHUP,)
"""What asks to read the registered extensions again; a terminal that is closed sends it too."""


class Signals:
    """These signals, any number of them, from now to the end of the process: one act, and never a sudden death."""

    def __init__(self, *numbers: signal.Signals) -> None:
        self._asked = False
        self._act: Callable[[], object] | None = None
        for number in numbers:
            signal.signal(number, self._ask)
        _let_through(numbers)

    def then(self, act: Callable[[], object]) -> None:
        """Have `act` called at every signal from now on; at once, if one came when there was nothing to call."""
        self._act = act
        if self._asked:
            self._asked = False
            act()

    def no_more(self) -> None:
        """Call nothing any more: what was to be called is at its end."""
        self._act = None

    def _ask(self, number: int, frame: FrameType | None) -> None:
        if self._act is None:
            self._asked = True
        else:
            self._act()


@contextmanager
def hangups_held() -> Iterator[None]:
    """Let hangups wait, here and in what is started meanwhile, which inherits it until it has `Signals` of its own.

    A closed terminal tells all its processes at once, also one that does not listen yet, and would die of it.
    """
    if sys.platform != "win32":
        signal.pthread_sigmask(signal.SIG_BLOCK, HANGUPS)
    try:
        yield
    finally:
        _let_through(HANGUPS)


def ignore_signals() -> None:
    """From now to the end of this process, which is near: Python itself would let them kill it on its last steps."""
    for number in (*STOPS, *HANGUPS):
        signal.signal(number, signal.SIG_IGN)


def _let_through(numbers: tuple[signal.Signals, ...]) -> None:
    if sys.platform != "win32":
        signal.pthread_sigmask(signal.SIG_UNBLOCK, numbers)
