"""Reads PINs from a prompt or a pipe, never from the command line."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TypeVar

from extcli.errors import CliError, Refused, UsageError
from extcli.output.printer import write_stderr

_LENGTH = 6
_RETRIES = 3
_MAX_LINE = 200
T = TypeVar("T")


def ask_for_pin(argument: str | None, shown_by: str, use: Callable[[str], T]) -> T:
    """Read a PIN and return `use(pin)`. On a terminal an empty line or a refused PIN can be retyped three times.

    `shown_by` names the program or page that shows the PIN, for the prompt.
    """
    if argument not in (None, "-"):
        raise UsageError(
            "a PIN cannot be given on the command line",
            why="process lists and shell histories show it",
            fix="type it at the prompt, or pipe it in",
        )
    if sys.__stdin__ is None:
        raise UsageError("standard input is closed", fix="type the PIN at the prompt, or pipe it in")
    on_terminal = sys.stdin.isatty()
    left = _RETRIES if on_terminal else 0
    while True:
        try:
            return use(checked_pin(_typed_line(f"The PIN that {shown_by} shows: ")))
        except CliError as error:
            refused = isinstance(error, Refused) and error.status == 400
            if refused:
                error.fix = f"PINs expire after five minutes: request a new one in {shown_by}"
            elif on_terminal and isinstance(error, _InvalidPin):
                error.fix = f"type the PIN that {shown_by} shows"
            if not (left and (refused or isinstance(error, _InvalidPin))):
                raise
            write_stderr(error.lines())
            left -= 1


class _InvalidPin(UsageError):
    """Raised for input that cannot be a PIN."""


def checked_pin(line: str) -> str:
    """Return the PIN of a line. Raises `UsageError`, without quoting it, unless it is six letters or digits."""
    fix = "type it at the prompt, or pipe it in"
    if not line:
        raise UsageError("no PIN was given", why="standard input is empty", fix=fix)
    text = line.strip()
    if not text:
        raise _InvalidPin("no PIN was given", why="the line is empty", fix=fix)
    if len(text) != _LENGTH or not (text.isascii() and text.isalnum()):
        raise _InvalidPin(
            "this is not a PIN",
            why=f"a PIN is {_LENGTH} letters and digits",
            fix="pipe in the PIN alone: `extcli pin request -o plain`, or with --game its first column, `cut -f1`",
        )
    return text


def _typed_line(prompt: str) -> str:
    """Return the next line with its end; empty at the end of the input."""
    if sys.stdin.isatty():
        sys.stderr.write(prompt)
        sys.stderr.flush()
    return sys.stdin.buffer.readline(_MAX_LINE).decode(errors="replace")
