"""The format of a snapshot. No I/O.

A snapshot is one JSON document. Its first line is the header, its last line `]}`, and each line between is one record,
in the order of `engines/records.py`. Only the header changes with the version of extcli, and nothing in it is the time
of saving, so equal data give equal snapshots.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from emulator.core.clock import clamp_instant
from emulator.core.errors import BadRequest, Facts, refusal
from emulator.core.wire import json_codec
from emulator.storage.records import DocumentRecord, Record


@refusal(BadRequest, "Invalid snapshot", "docs: Snapshots", "The snapshot is invalid",
         "Save it again: `extcli snapshot save FILE`.")  # fmt: skip
def invalid(line: int, problem: str) -> Facts:
    """A line of a snapshot is invalid. `line` counts from 1; 0 means that the record is not part of a file."""
    detail = f"line {line}: {problem}" if line else problem
    return Facts(detail, detail, "a snapshot as it was saved")


FORMAT = 1
"""The format that this version writes, and the only one that it reads."""
END = b"]}\n"
SECRET_KINDS = frozenset({"signing_key", "pin", "pin_token", "link"})
"""Kinds of documents that are only saved with the keys: the key that signs tokens, and the records behind tokens."""
_RECORDS = b',"records":['


class ClockState(msgspec.Struct, omit_defaults=True, forbid_unknown_fields=True):
    """The state of the clock in a snapshot: the offset of a running clock, or the instant of a frozen one."""

    offset: int = 0
    """In ms, ahead of the system time; ignored if frozen."""
    frozen_at: int | None = None
    """In Unix ms."""


class Header(msgspec.Struct):
    """The first line of a snapshot."""

    extcli_snapshot: int
    """The number of the format."""
    version: str
    """The version of extcli that saved it."""
    environment: str
    clock: ClockState
    keys: bool
    """Whether it has the documents of `SECRET_KINDS`."""
    counts: dict[str, int]
    """The number of records by type. Types without records are absent."""


class _Format(msgspec.Struct):
    """The fields of a snapshot's header that every version of the format has."""

    extcli_snapshot: int


def encode_header(header: Header) -> bytes:
    """Return the first line."""
    return json_codec.encode(header)[:-1] + _RECORDS + b"\n"


def decode_header(line: bytes) -> Header:
    """Return the header from a snapshot's first line, which is passed without spaces around it. Raises `BadRequest`."""
    if line.startswith(b"\x1f\x8b"):
        raise invalid(1, "the snapshot is compressed; its file name must end in .gz")
    if not line.endswith(_RECORDS):
        raise invalid(1, "this is not the first line of a snapshot; a reformatted snapshot cannot be loaded")
    try:
        document = line.removesuffix(_RECORDS) + b"}"
        number = msgspec.json.decode(document, type=_Format).extcli_snapshot
        if number != FORMAT:
            raise invalid(1, f"extcli_snapshot: format {number} is unknown; this version reads format {FORMAT}")
        return msgspec.json.decode(document, type=Header)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise invalid(1, json_codec.error_text(error)) from None


def check_header(header: Header, environment: str, now: int) -> None:
    """Raise `BadRequest` for a snapshot of another environment, or of a time that a clock cannot show.

    `now` is the system time in Unix ms.
    """
    if header.environment != environment:
        raise invalid(1, f"environment: the snapshot is of {header.environment[:40]!r}, this service is {environment}")
    clock = header.clock
    instant = now + clock.offset if clock.frozen_at is None else clock.frozen_at
    if instant != clamp_instant(instant):
        raise invalid(1, "clock: must show a time from 1970 to 9999")


def check_counts(header: Header, counts: Mapping[str, int], line: int) -> None:
    """Raise `BadRequest` unless the numbers of records equal the header's.

    `line` is the number of the last line, for the error.
    """
    for name in sorted({*header.counts, *counts}):
        declared, found = header.counts.get(name, 0), counts.get(name, 0)
        if declared != found:
            raise invalid(line, f"{name}: the first line counts {declared:,} of them, but there are {found:,}")


def is_secret(record: Record) -> bool:
    """Whether the record is only saved with the keys."""
    return type(record) is DocumentRecord and record.key.kind in SECRET_KINDS
