"""Signals of this process as bytes on a descriptor, so that one loop waits for them and for everything else."""

from __future__ import annotations

import os
import signal
from contextlib import suppress

ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_ALL = (*ENDING, signal.SIGCHLD, signal.SIGTSTP, signal.SIGCONT)


class Signals:
    """Catches the signals that end, stop or continue a command, and news of child processes."""

    def __init__(self) -> None:
        self.descriptor, self._writer = os.pipe()
        for end in (self.descriptor, self._writer):
            os.set_blocking(end, False)
        signal.set_wakeup_fd(self._writer, warn_on_full_buffer=False)
        # `nohup` ignores SIGHUP; that holds for the command, too.
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
