"""Files of snapshots: reads, writes, sends, receives and compares them.

Names that end in `.gz` are compressed; equal snapshots give equal files.
"""

from __future__ import annotations

import gzip
import sys
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, cast

from emulator.contract import user_files
from extcli import atomic_file, bounded_json
from extcli.api.call import Streamed
from extcli.errors import UnexpectedResponse, UsageError
from extcli.output import times
from extcli.output.columns import Column, int_column, listing, name_and_count_columns, one_item
from extcli.output.printer import RenderableType
from extcli.output.sanitize import visible
from extcli.output.views import stack
from extcli.reading import LARGEST_ITEM, Json, Response, shape_problem

TIMEOUT = 600.0
"""Seconds to wait for a response: a service may read or write millions of records before it sends one."""
STDIO = "-"
"""The name of standard input and standard output."""
_PIECE_BYTES = 256 * 1024
"""Bytes that are read at once."""
_GZIP_LEVEL = 6
"""How much gzip compresses: nine is three times slower and saves little."""
_BEGINNING, _RECORDS, _LAST_LINE = b'{"extcli_snapshot":', b',"records":[', b"]}"
"""How the first line of a snapshot begins and ends, and its last line."""
_HEADER = {"extcli_snapshot": int, "version": str, "environment": str, "clock": dict, "keys": bool, "counts": dict}
"""The shape of the first line. `clock` has `offset` in ms, `frozen_at` in Unix ms, or nothing for real time."""
_REPEATABLE_TYPES = ("item", "list_items", "handed")
"""Types whose records may have the same identity."""
_IDENTITY_FIELDS: Mapping[str, tuple[str, ...]] = {
    "choice": ("choice",),
    "entry": ("voter", "choice"),
    "item": ("at",),
    "pool": ("number",),
    "handed": ("number", "user"),
    "spent": ("digest",),
    "member": ("member",),
}
"""The fields, besides `key`, that tell the records of a type apart."""

Header = Mapping[str, Any]


@contextmanager
def replace_snapshot(path: Path) -> Iterator[BinaryIO]:
    """Yield a file that replaces the one at `path` when the block ends without an error. Raises `OSError`."""
    with atomic_file.replacement_of(path) as file:
        if path.suffix != ".gz":
            yield file
            return
        # Neither the time nor the name of the temporary file is part of the result.
        with gzip.GzipFile(filename="", mode="wb", compresslevel=_GZIP_LEVEL, fileobj=file, mtime=0) as compressed:
            yield cast("BinaryIO", compressed)


@contextmanager
def open_snapshot(path: Path) -> Iterator[BinaryIO]:
    """Yield the content of the file. Raises `OSError`, and `EOFError` or `zlib.error` while a damaged one is read."""
    with (
        user_files.opened(path, pipes=True) as file,
        gzip.open(file) if path.suffix == ".gz" else nullcontext(file) as content,
    ):
        yield cast("BinaryIO", content)


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


# Between a file and a service


class SnapshotBody(Streamed):
    """The content of a file, which is read while it is sent. Each iteration reads it again."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.length = None if path.suffix == ".gz" else path.stat().st_size

    def __iter__(self) -> Iterator[bytes]:
        # Without its end the body is invalid, so the service changes nothing.
        with _read_errors(self._path), open_snapshot(self._path) as file:
            while piece := file.read(_PIECE_BYTES):
                yield piece


def request_body(name: str) -> SnapshotBody | bytes:
    """Return the body of a request from this file, or from standard input. Raises `UsageError`."""
    if name == STDIO:
        return sys.stdin.buffer.read()
    with _read_errors(path := Path(name)):
        return SnapshotBody(path)


def save_response(response: Response, path: Path) -> Header:
    """Write a snapshot to a file, which is replaced once the snapshot is complete. Returns its header."""
    first = b""
    with atomic_file.write_errors(path), replace_snapshot(path) as file:
        for piece in checked_snapshot(response):
            first = first if b"\n" in first else first + piece
            file.write(piece)
    return _header_of(first.partition(b"\n")[0], path)


def checked_snapshot(response: Response) -> Iterator[bytes]:
    """Yield the body of a response. Raises `UnexpectedResponse` if it does not begin and end like a snapshot."""
    pieces, last_line = response.iter_bytes(), _LAST_LINE + b"\n"
    first = next(pieces, b"")
    if not first.startswith(_BEGINNING):
        raise UnexpectedResponse(response)
    end = b""
    for piece in chain([first], pieces):
        end = (end + piece)[-len(last_line) :]
        yield piece
    if end != last_line:
        raise UnexpectedResponse(response)


# The records of a file


class Identity(NamedTuple):
    """The identity of a record within its snapshot. Contains no values, which may be secrets or codes."""

    type: str
    key: tuple[str, ...]
    of: tuple[str, ...]
    """What distinguishes the records of a key, such as the voter and the choice."""


Record = tuple[Identity, bytes]
"""The identity of a record, and its line."""


@contextmanager
def open_records(path: Path) -> Iterator[tuple[Header, Iterator[Record]]]:
    """Open a file, and yield its header and its records.

    Raises `UsageError` for a file that cannot be read, is incomplete, or does not have the records it counts.
    """
    with _read_errors(path), open_snapshot(path) as file:
        header = _header_of(file.readline(LARGEST_ITEM), path)
        yield header, _records(file, header, path)


def _header_of(line: bytes, path: Path) -> Header:
    """Return the facts in the first line of a file. Raises `UsageError`."""
    start, records, rest = line.rstrip().rpartition(_RECORDS)
    header = bounded_json.members(start + b"}")
    if not records or rest or shape_problem(header, _HEADER):
        raise _invalid(path, "line 1: not the first line of a snapshot")
    if header["extcli_snapshot"] != 1:
        problem = f"line 1: extcli_snapshot: format {header['extcli_snapshot']} is unknown"
        raise _invalid(path, problem, fix="use the version of extcli that saved it")
    return header


def _records(file: BinaryIO, header: Header, path: Path) -> Iterator[Record]:
    repeated: Counter[Identity] = Counter()
    for count, line in enumerate(iter(partial(file.readline, LARGEST_ITEM), b"")):
        text = line.strip()
        if text == _LAST_LINE:
            if count != (expected := sum(header["counts"].values())):
                raise _invalid(path, f"has {count:,} records, but its first line counts {expected:,}")
            return
        text = text.removesuffix(b",")
        try:
            fields = bounded_json.decoded(text)
            of = tuple(str(fields[name]) for name in _IDENTITY_FIELDS.get(fields["type"], ()))
            identity = Identity(fields["type"], tuple(map(str, fields["key"])), of)
        except (ValueError, KeyError, TypeError):
            raise _invalid(path, f"line {count + 2}: not a record of a snapshot") from None
        if identity.type in _REPEATABLE_TYPES:
            repeated[identity] += 1
            identity = identity._replace(of=(*of, f"#{repeated[identity]}"))
        yield identity, text
    raise _invalid(path, "incomplete: its last line `]}` is missing", fix="save it again")


# What a snapshot has, and what two of them differ in

ADDED, REMOVED, CHANGED = "added", "removed", "changed"
SIGNS = {ADDED: "+", REMOVED: "-", CHANGED: "~"}


def describe_file(path: Path) -> Json:
    """Read a whole file, and return what `snapshot show` prints. Raises `UsageError`."""
    with open_records(path) as (header, records):
        kinds = Counter((identity.type, identity.key[0]) for identity, _ in records)
    return {
        "file": str(path),
        "bytes": path.stat().st_size,
        **{name: header[name] for name in ("version", "environment", "clock", "keys")},
        "records": [{"type": type, "kind": kind, "count": count} for (type, kind), count in kinds.items()],
    }


def compare_files(before: Path, after: Path, *, most: int) -> Json:
    """Return the differences between two files as JSON, with at most `most` of the records, removed ones last.

    The version of extcli that saved a file is not compared. Raises `UsageError`.
    """
    with open_records(before) as (old_header, records):
        old = dict(records)
    with open_records(after) as (new_header, records):
        new = dict(records)
    found = {
        ADDED: [each for each in new if each not in old],
        CHANGED: [each for each, line in new.items() if old.get(each, line) != line],
        REMOVED: [each for each in old if each not in new],
    }
    listed = [(change, each) for change, some in found.items() for each in some][:most]
    header = [name for name in ("environment", "clock", "keys") if old_header[name] != new_header[name]]
    is_in_other_order = not any(found.values()) and list(old) != list(new)
    return {
        "equal": not (header or any(found.values()) or is_in_other_order),
        "header": header,
        **{change: len(found[change]) for change in SIGNS},
        "other_order": is_in_other_order,
        "records": [
            {"change": change, "type": each.type, "key": list(each.key), "of": list(each.of)}
            | ({"fields": _changed_fields(old[each], new[each])} if change == CHANGED else {})
            for change, each in listed
        ],
    }


def _changed_fields(before: bytes, after: bytes) -> list[str]:
    old, new = bounded_json.decoded(before), bounded_json.decoded(after)
    return [name for name in sorted({*old, *new}) if old.get(name) != new.get(name)]


COUNTS = listing(
    lambda response: response["counts"].items(),
    *name_and_count_columns("type", "records"),
    else_shown="no records",
    items=one_item,
)
"""The response to a load."""


def _clock_text(clock: Mapping[str, int]) -> str:
    """Describe the clock of a snapshot."""
    if (frozen_at := clock.get("frozen_at")) is not None:
        return f"frozen at {times.utc_text(frozen_at)}"
    return times.clock_offset_text(clock.get("offset", 0)) or "real time"


def _facts_above(facts: Mapping[str, Any], records: RenderableType) -> RenderableType:
    lines = (
        f"clock    {_clock_text(facts['clock'])}",
        f"keys     {'yes' if facts['keys'] else 'no'}",
        f"saved by extcli {visible(facts['version'])}, {visible(facts['environment'])}",
        f"size     {facts['bytes']:,} bytes",
    )
    return stack("\n".join(lines), records)


FACTS = listing(
    "records",
    Column("type", heading="records"),
    Column("kind"),
    int_column("count", heading=""),
    else_shown=lambda facts: _facts_above(facts, "no records"),
    around=_facts_above,
    items=one_item,
)


def _changed_rows(document: Mapping[str, Any]) -> list[Json]:
    header = [{"change": CHANGED, "type": "header", "key": [name], "of": []} for name in document["header"]]
    return [*header, *document["records"]]


DIFFERENCE = listing(
    _changed_rows,
    Column("|".join(SIGNS.values()), lambda each: SIGNS[each["change"]], ""),
    Column("type", heading="record"),
    Column("key", lambda each: " ".join(part or "-" for part in (*each["key"], *each["of"]))),
    Column("fields", lambda each: ", ".join(each.get("fields", ())), "changed fields"),
    else_shown=lambda document: "no difference" if document["equal"] else "the records are the same, in another order",
    items=lambda document: document["records"],
)
