"""Stops the service when the program that started it is gone, however that program ended."""

from __future__ import annotations

import os
import signal
import sys
import threading
from contextlib import suppress

from emulator.errors import ConfigurationError
from emulator.process.signals import stop_this_process


def stop_when_closed(descriptor: int) -> None:
    """Stop this process, as SIGTERM does, once the last writer of this pipe has closed it.

    A writer may send the id of a process group on a line: then the group is also killed; 0 means none. So a
    program that is killed itself leaves no children behind. Raises `ConfigurationError` if no file is open there.
    """
    try:
        os.fstat(descriptor)
    except OSError as error:
        raise ConfigurationError(f"--lifeline {descriptor}: {error.strerror}") from None
    os.set_inheritable(descriptor, False)
    threading.Thread(target=_read_and_stop, args=(descriptor,), name="lifeline", daemon=True).start()


def _read_and_stop(descriptor: int) -> None:
    received = b""
    with suppress(OSError):
        while data := os.read(descriptor, 4096):
            received = (received + data)[-4096:]
    *_, group = (int(line) for line in [b"0", *received.split()] if line.isdigit())
    if group > 1 and sys.platform != "win32":
        with suppress(OSError):  # it has ended
            os.killpg(group, signal.SIGKILL)
    stop_this_process()
