"""The controlling terminal, and which process group it belongs to."""

from __future__ import annotations

import os
import signal
from contextlib import suppress


class Terminal:
    """Lends the terminal to another process group, if this one has it. Without a terminal, does nothing."""

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
        """Give the terminal to a group, if this one has it. Returns whether it did."""
        return self._group() == self._own and self._set(group)

    def take_back(self, group: int) -> bool:
        """Take the terminal back from a group, if that has it. Returns whether it did."""
        return self._group() == group and self._set(self._own)

    def _group(self) -> int | None:
        if self._file is not None:
            with suppress(OSError):
                return os.tcgetpgrp(self._file)
        return None

    def _set(self, group: int) -> bool:
        if self._file is not None:
            with suppress(OSError):  # the group has ended
                os.tcsetpgrp(self._file, group)
                return True
        return False
