"""Reads files that the user has named. Each is bounded before its content is looked at."""

from __future__ import annotations

import codecs
import errno
import os
import re
import stat
from pathlib import Path
from typing import Any, BinaryIO

MAX_CONFIGURATION_BYTES = 1 << 20
"""Bytes of a file of profiles or of registered extensions."""
SECRET = 64 << 10
"""Bytes of a file with a secret or a token."""
MAX_DOCUMENT_BYTES = 64 << 20
"""Bytes of a seed, of a file of faults, of a recording, and of JSON from a file or from standard input."""


def content(path: str | Path, largest: int, *, pipes: bool = False) -> bytes:
    """Return the content of a regular file of at most `largest` bytes. With `pipes`, pipes such as `<(…)` are allowed.

    Raises `OSError`, even for a device and for a larger file.
    """
    with opened(path, pipes=pipes) as file:
        return read_bounded(file, largest)


def text(path: str | Path, largest: int, *, pipes: bool = False) -> str:
    """Return the content as text, without a UTF-8 byte order mark.

    Raises `OSError` as `content` does, and `UnicodeDecodeError`, for example for UTF-16, which PowerShell 5 writes.
    """
    data = content(path, largest, pipes=pipes)
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise OSError(errno.EILSEQ, "it is UTF-16; save it as UTF-8")
    return data.decode("utf-8-sig")


def read_bounded(file: BinaryIO, largest: int) -> bytes:
    """Return the rest of an open file, at most `largest` bytes. Raises `OSError` for more."""
    data = file.read(largest + 1)
    if len(data) > largest:
        raise OSError(errno.EFBIG, f"it is larger than {largest:,} bytes")
    return data


def opened(path: str | Path, *, pipes: bool = False) -> BinaryIO:
    """Open a regular file; with `pipes`, also a pipe. Raises `OSError`.

    A pipe that nothing writes to is opened when something does, as in every other program.
    """
    is_pipe = pipes and stat.S_ISFIFO(os.stat(path).st_mode)
    flags = os.O_RDONLY | getattr(os, "O_BINARY", 0)
    if not is_pipe:  # else opening a pipe or a device may block forever
        flags |= getattr(os, "O_NONBLOCK", 0)
    file = os.fdopen(os.open(path, flags), "rb")
    mode = os.fstat(file.fileno()).st_mode
    if stat.S_ISREG(mode) or (is_pipe and stat.S_ISFIFO(mode)):
        return file
    file.close()
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    raise OSError(errno.EINVAL, "it is not a regular file")


MAX_KEY_PARTS = 100
"""Parts of one dotted key. The time and memory that `tomllib` takes for a key grow with the square of its parts."""
_LARGEST_NUMBER = 1 << 4096
_PART = r"""(?:[A-Za-z0-9_-]++|"[^"\n]*+"|'[^'\n]*+')"""
_LONG_KEY = re.compile(rf"(?<![A-Za-z0-9_-])(?:{_PART}[ \t]*+\.[ \t]*+){{{MAX_KEY_PARTS}}}")


def parse_toml(text: str) -> dict[str, Any]:
    """Return the document. Raises `ValueError`: `tomllib.TOMLDecodeError` if it is not TOML; and `RecursionError`."""
    import tomllib

    if text.count(".") >= MAX_KEY_PARTS and _LONG_KEY.search(text):
        raise ValueError(f"a key has more than {MAX_KEY_PARTS} parts")
    document = tomllib.loads(text)
    _check_numbers(document)
    return document


def _check_numbers(document: dict[str, Any]) -> None:
    """Raise `ValueError` for a whole number that no message could show: hexadecimal ones have no limit of digits."""
    level: list[Any] = [document]
    while level:
        value = level.pop()
        if isinstance(value, dict):
            level += value.values()
        elif isinstance(value, list):
            level += value
        elif isinstance(value, int) and abs(value) >= _LARGEST_NUMBER:
            raise ValueError("a number has too many digits")
