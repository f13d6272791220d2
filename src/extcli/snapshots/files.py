"""Opens files of snapshots. Names that end in `.gz` are compressed; equal snapshots give equal files."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, cast

from extcli import atomic_file
from extcli.reading import user_files

PIECE = 256 * 1024
"""Bytes that are read at once."""
_LEVEL = 6
"""How much gzip compresses: nine is three times slower and saves little."""


def is_compressed(path: Path) -> bool:
    """Return whether the file is compressed, by its name."""
    return path.suffix == ".gz"


@contextmanager
def written(path: Path) -> Iterator[BinaryIO]:
    """Yield a file that replaces the one at `path` when the block ends without an error. Raises `OSError`."""
    with atomic_file.replacing(path) as file:
        if not is_compressed(path):
            yield file
            return
        import gzip

        # Neither the time nor the name of the temporary file is part of the result.
        with gzip.GzipFile(filename="", mode="wb", compresslevel=_LEVEL, fileobj=file, mtime=0) as compressed:
            yield cast("BinaryIO", compressed)


@contextmanager
def opened(path: Path) -> Iterator[BinaryIO]:
    """Yield the content of the file. Raises `OSError`, and `EOFError` or `zlib.error` while a damaged one is read."""
    if is_compressed(path):
        import gzip

        with user_files.opened(path, pipes=True) as file, gzip.open(file) as compressed:
            yield cast("BinaryIO", compressed)
        return
    with user_files.opened(path, pipes=True) as file:
        yield file


def pieces(file: BinaryIO) -> Iterator[bytes]:
    """Yield the content of an open file."""
    while piece := file.read(PIECE):
        yield piece


def size(path: Path) -> int:
    """Return the size of the file in bytes. Raises `OSError`."""
    return os.stat(path).st_size
