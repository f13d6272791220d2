"""The formats that results are printed in, and standard streams whose reader is gone, or whose disk is full."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from errno import EBADF
from io import BufferedWriter, FileIO, TextIOWrapper
from typing import Any

from extcli.errors import UsageError


class Format(StrEnum):
    """How a result is printed."""

    TABLE = "table"
    PLAIN = "plain"
    CSV = "csv"
    JSON = "json"
    JSONL = "jsonl"
    ENV = "env"
    """Lines for a shell. Only commands that describe a service have it."""


class StandardOutput(BufferedWriter):
    """Standard output, which every print reaches. Raises `UsageError` if it cannot be written.

    A closed reader stays `BrokenPipeError`, which is not a failure. The file below is one of Python's own: were its
    `write` a function of ours, a signal just after it would leave the buffer full, and exit would write it again.
    """

    def write(self, data: Any) -> int:
        with _usage_errors():
            return super().write(data)

    def flush(self) -> None:
        with _usage_errors():
            super().flush()


@contextmanager
def _usage_errors() -> Iterator[None]:
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        why = "standard output is closed" if error.errno == EBADF else error.strerror or ""
        raise UsageError("cannot write the output", why=why) from None


def check_output_writes() -> None:
    """Make `sys.stdout` a `StandardOutput`. If the shell has closed it, it cannot be written."""
    given: TextIOWrapper | None = sys.stdout  # type: ignore[assignment]
    if given is None:  # the descriptor gets its number again, so that no socket becomes standard output
        sys.stdout = TextIOWrapper(StandardOutput(FileIO(os.open(os.devnull, os.O_RDONLY), "w")), "utf-8")
    elif given is sys.__stdout__ and not (sys.platform == "win32" and given.isatty()):
        sys.stdout = TextIOWrapper(
            StandardOutput(FileIO(given.fileno(), "w", closefd=False)),
            given.encoding,
            given.errors,
            line_buffering=given.line_buffering,
            write_through=given.write_through,
        )


def flush() -> None:
    """Flush standard output."""
    sys.stdout.flush()


def discard_rest(stream: Any) -> None:
    """Discard the rest of a stream whose reader is gone, including the flush at exit."""
    nothing = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, stream.fileno())
    os.close(nothing)
