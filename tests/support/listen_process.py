"""Reads the output of a running `extcli listen`."""

from __future__ import annotations

import subprocess

from emulator.core.keys import Key
from support.service import CLIENT_ID

TIMEOUT = 60
"""Seconds for a process to end."""
CHANNEL = "1001"
"""The default channel of commands."""
ROUND = Key("event", CLIENT_ID, "round", CHANNEL)

Process = subprocess.Popen[bytes]


def read_until(process: Process, start: str) -> str:
    """Read standard error up to the line with this start, and return that line."""
    assert process.stderr is not None
    for line in process.stderr:
        if line.decode().startswith(start):
            return line.decode().strip()
    raise AssertionError(f"no line starts with {start!r}")


def next_event(process: Process) -> str:
    """Return the next line of data."""
    assert process.stdout is not None
    return process.stdout.readline().decode().rstrip("\n")
