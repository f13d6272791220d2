"""The formats that results are printed in, and standard streams whose reader is gone, or whose disk is full."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from typing import Any

from extcli.errors import CliError


class Format(StrEnum):
    """How a result is printed."""

    TABLE = "table"
    PLAIN = "plain"
    CSV = "csv"
    JSON = "json"
    JSONL = "jsonl"
    ENV = "env"
    """Lines for a shell. Only commands that describe a service have it."""


def flush() -> None:
    """Flush standard output. Raises `CliError` if it cannot be written."""
    with writable():
        sys.stdout.flush()


@contextmanager
def writable() -> Iterator[None]:
    """Turn a full disk into `CliError`. A closed reader stays `BrokenPipeError`, which is not a failure."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        silence(sys.stdout)
        raise CliError("cannot write the output", why=error.strerror or "") from None


def silence(stream: Any) -> None:
    """Discard the rest of a stream whose reader is gone, including the flush at exit."""
    nothing = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, stream.fileno())
    os.close(nothing)
