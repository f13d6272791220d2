"""Sends snapshots to a service, and receives them."""

from __future__ import annotations

import sys
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, TYPE_CHECKING

from extcli import atomic_file
from extcli.errors import UnexpectedAnswer, UsageError
from extcli.output.sanitize import visible
from extcli.snapshots import content
from extcli.snapshots.content import Header, header_of, unreadable

if TYPE_CHECKING:
    from extcli.api.http import Answer

TIMEOUT = 600.0
"""Seconds to wait for an answer: a service may read or write millions of records before it sends one."""
STANDARD = "-"
"""The name of standard input and standard output."""
_BEGINNING = b'{"extcli_snapshot":'
_END = b"]}\n"


class SnapshotBody:
    """The content of a file, which is read while it is sent. Each iteration reads it again."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.length = None if content.is_compressed(path) else content.size(path)

    def __iter__(self) -> Iterator[bytes]:
        try:
            with content.opened(self._path) as file:
                yield from content.pieces(file)
        except (EOFError, zlib.error):
            # Without its end the body is invalid, so the service changes nothing.
            raise UsageError(f"{visible(str(self._path))}: the compressed file is damaged or incomplete") from None
        except OSError as error:
            raise unreadable(self._path, error) from None


class _InputBody:
    """Standard input, kept in a temporary file."""

    def __init__(self, file: IO[bytes], length: int) -> None:
        self._file = file
        self.length = length

    def __iter__(self) -> Iterator[bytes]:
        self._file.seek(0)
        return content.pieces(self._file)


@contextmanager
def body_of(name: str) -> Iterator[SnapshotBody | _InputBody]:
    """Yield the body of a request from this file, or from standard input. Raises `UsageError`."""
    if name != STANDARD:
        path = Path(name)
        try:
            yield SnapshotBody(path)
        except OSError as error:
            raise unreadable(path, error) from None
        return
    with TemporaryFile() as file:
        for piece in content.pieces(sys.stdin.buffer):
            file.write(piece)
        yield _InputBody(file, file.tell())


def receive(answer: Answer, path: Path) -> Header:
    """Write a snapshot to a file, which is replaced once the snapshot is complete. Returns its header."""
    first = b""
    try:
        with content.written(path) as file:
            for piece in checked(answer):
                first = first if b"\n" in first else first + piece
                file.write(piece)
    except OSError as error:
        raise atomic_file.cannot_be_written(path, error) from None
    return header_of(first.partition(b"\n")[0], path)


def checked(answer: Answer) -> Iterable[bytes]:
    """Yield the body of the answer. Raises `UnexpectedAnswer` if it does not begin and end like a snapshot."""
    start = end = b""
    for piece in answer.iter_bytes():
        start = start if len(start) >= len(_BEGINNING) else start + piece[: len(_BEGINNING)]
        end = (end + piece)[-len(_END) :]
        if len(start) >= len(_BEGINNING) and not start.startswith(_BEGINNING):
            break
        yield piece
    if not start.startswith(_BEGINNING) or end != _END:
        raise UnexpectedAnswer(answer)
