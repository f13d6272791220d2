"""Reads the output of a running `extcli listen`."""

from __future__ import annotations

from emulator.core.keys import Key
from support.preloaded import Process
from support.service import CLIENT_ID

TIMEOUT = 60
"""Seconds for a process to end."""
CHANNEL = "1001"
"""The default channel of commands."""
ROUND = Key("event", CLIENT_ID, "round", CHANNEL)


def read_until(process: Process, start: str) -> str:
    """Read standard error up to the line with this start, and return that line."""
    for line in process.stderr:
        if line.startswith(start):
            return line.strip()
    raise AssertionError(f"no line starts with {start!r}")


def next_event(process: Process) -> str:
    """Return the next line of data."""
    return process.stdout.readline().rstrip("\n")
