"""Files of snapshots: reads, writes, sends and receives them.

Names that end in `.gz` are compressed; equal snapshots give equal files.
"""

from __future__ import annotations

import os
import shutil
import sys
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple, cast

from emulator.contract import user_files
from extcli import atomic_file, bounded_json
from extcli.errors import UnexpectedResponse, UsageError
from extcli.output.sanitize import visible
from extcli.reading.streams import LARGEST_ITEM

if TYPE_CHECKING:
    from extcli.api.http import Response

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


def size(path: Path) -> int:
    """Return the size of the file in bytes. Raises `OSError`."""
    return os.stat(path).st_size


_RECORDS = b',"records":['
_END = b"]}"
_REPEATABLE = ("item", "list_items", "handed")
"""Types whose records may have the same identity."""
_IDENTITY: Mapping[str, tuple[str, ...]] = {
    "choice": ("choice",),
    "entry": ("voter", "choice"),
    "item": ("at",),
    "pool": ("number",),
    "handed": ("number", "user"),
    "spent": ("digest",),
    "member": ("member",),
}
"""The fields, besides `key`, that tell the records of a type apart."""


class Identity(NamedTuple):
    """The identity of a record within its snapshot. Contains no values, which may be secrets or codes."""

    type: str
    key: tuple[str, ...]
    of: tuple[str, ...]
    """What distinguishes the records of a key, such as the voter and the choice."""


class Header(NamedTuple):
    """The first line of a snapshot."""

    version: str
    environment: str
    clock: Mapping[str, int]
    """`offset` in ms or `frozen_at` in Unix ms; empty for real time."""
    keys: bool
    counts: Mapping[str, int]
    """The number of records by type."""


def header_of(line: bytes, path: Path) -> Header:
    """Return the header in the first line of a file. Raises `UsageError`."""
    try:
        if not line.rstrip().endswith(_RECORDS):
            raise ValueError
        facts = bounded_json.decoded(line.rstrip().removesuffix(_RECORDS) + b"}")
        number = facts["extcli_snapshot"]
        if number != 1:
            problem = f"line 1: extcli_snapshot: format {number} is unknown"
            raise _invalid(path, problem, fix="use the version of extcli that saved it")
        return Header(facts["version"], facts["environment"], facts["clock"], facts["keys"], facts["counts"])
    except (ValueError, KeyError, TypeError):
        raise _invalid(path, "line 1: not the first line of a snapshot") from None


@contextmanager
def lines_of(path: Path) -> Iterator[tuple[Header, Iterator[bytes]]]:
    """Open a file, and yield its header and the lines of its records without commas.

    Raises `UsageError` for a file that cannot be read, is incomplete, or does not have the records it counts.
    """
    with _read_errors(path), opened(path) as file:
        header = header_of(next(_lines(file, path), b""), path)
        yield header, _records(file, header, path)


def _lines(file: BinaryIO, path: Path) -> Iterator[bytes]:
    """Yield the next lines of a snapshot. Raises `UsageError` for a line that no snapshot can contain."""
    while line := file.readline(LARGEST_ITEM + 1):
        if len(line) > LARGEST_ITEM:
            raise _invalid(path, f"a line is longer than {LARGEST_ITEM:,} bytes")
        yield line


def _records(file: BinaryIO, header: Header, path: Path) -> Iterator[bytes]:
    for count, line in enumerate(_lines(file, path)):
        text = line.strip()
        if text == _END:
            if count != (expected := sum(header.counts.values())):
                raise _invalid(path, f"has {count:,} records, but its first line counts {expected:,}")
            return
        yield text.removesuffix(b",")
    raise _invalid(path, "incomplete: its last line `]}` is missing", fix="save it again")


@contextmanager
def _read_errors(path: Path) -> Iterator[None]:
    """Turn the errors of reading a file into `UsageError`."""
    try:
        yield
    except (EOFError, zlib.error):
        raise _invalid(path, "the compressed file is damaged or incomplete") from None
    except OSError as error:
        reason = error.strerror or "it is not compressed by gzip"
        raise UsageError(f"cannot read {visible(str(path))}: {reason}") from None


def _invalid(path: Path, problem: str, fix: str = "") -> UsageError:
    return UsageError(f"{visible(str(path))}: {problem}", fix=fix)


class Records:
    """Decodes the lines of one file in turn, and names their records."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._line = 1
        self._repeated: Counter[Identity] = Counter()

    def decode(self, line: bytes) -> tuple[Identity, dict[str, Any]]:
        """Return the identity and all fields of the record. Raises `UsageError`."""
        self._line += 1
        try:
            fields = bounded_json.decoded(line)
            kind = fields["type"]
            of = tuple(str(fields[name]) for name in _IDENTITY.get(kind, ()))
            identity = Identity(kind, tuple(fields["key"]), of)
        except (ValueError, KeyError, TypeError):
            raise _invalid(self._path, f"line {self._line}: not a record of a snapshot") from None
        if kind in _REPEATABLE:
            self._repeated[identity] += 1
            identity = identity._replace(of=(*of, f"#{self._repeated[identity]}"))
        return identity, fields


TIMEOUT = 600.0
"""Seconds to wait for a response: a service may read or write millions of records before it sends one."""
STANDARD = "-"
"""The name of standard input and standard output."""
_BEGINNING = b'{"extcli_snapshot":'
_LAST_LINE = b"]}\n"


class SnapshotBody:
    """The content of a file, which is read while it is sent. Each iteration reads it again."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.length = None if is_compressed(path) else size(path)

    def __iter__(self) -> Iterator[bytes]:
        # Without its end the body is invalid, so the service changes nothing.
        with _read_errors(self._path), opened(self._path) as file:
            while piece := file.read(PIECE):
                yield piece


@contextmanager
def body_of(name: str) -> Iterator[SnapshotBody]:
    """Yield the body of a request from this file, or from a copy of standard input. Raises `UsageError`."""
    if name != STANDARD:
        with _read_errors(path := Path(name)):
            yield SnapshotBody(path)
        return
    with TemporaryDirectory() as folder:
        path = Path(folder, "snapshot")
        with path.open("wb") as file:
            shutil.copyfileobj(sys.stdin.buffer, file, PIECE)
        yield SnapshotBody(path)


def receive(response: Response, path: Path) -> Header:
    """Write a snapshot to a file, which is replaced once the snapshot is complete. Returns its header."""
    first = b""
    with atomic_file.write_errors(path), written(path) as file:
        for piece in checked_body(response):
            first = first if b"\n" in first else first + piece
            file.write(piece)
    return header_of(first.partition(b"\n")[0], path)


def checked_body(response: Response) -> Iterable[bytes]:
    """Yield the body of a response. Raises `UnexpectedResponse` if it does not begin and end like a snapshot."""
    start = end = b""
    for piece in response.iter_bytes():
        start = start if len(start) >= len(_BEGINNING) else start + piece[: len(_BEGINNING)]
        end = (end + piece)[-len(_LAST_LINE) :]
        if len(start) >= len(_BEGINNING) and not start.startswith(_BEGINNING):
            break
        yield piece
    if not start.startswith(_BEGINNING) or end != _LAST_LINE:
        raise UnexpectedResponse(response)
