"""The format of a snapshot. No I/O.

A snapshot is one JSON document. Its first line is the header, its last line `]}`, and each line between is one record,
in the order of `engines/records.py`. Only the header changes with the version of extcli, and nothing in it is the time
of saving, so equal data give equal snapshots.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from math import ceil

import msgspec

from emulator.clock import clamp_instant
from emulator.control.snapshots.refusals import invalid
from emulator.engines.records import (
    ITEMS_PER_RECORD,
    OWNERS,
    DocumentRecord,
    HandedRecord,
    ListItemsRecord,
    PoolRecord,
    Record,
)
from emulator.engines.shapes import NEVER, Key
from emulator.wire import json_codec

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
    instant = instant_of(header, now)
    if instant != clamp_instant(instant):
        raise invalid(1, "clock: must show a time from 1970 to 9999")


def instant_of(header: Header, now: int) -> int:
    """Return what the clock of a snapshot shows at the system time `now`, both in Unix ms."""
    clock = header.clock
    return now + clock.offset if clock.frozen_at is None else clock.frozen_at


_OWNER_TYPES = frozenset(OWNERS.values())


class AliveCounts:
    """Counts the records of a valid snapshot that a service holds once it has loaded them."""

    def __init__(self) -> None:
        self.counts: Counter[type[Record]] = Counter()
        self._expired: set[tuple[type[Record], Key, int]] = set()
        """What had expired and may be followed by its contents: the type, the key, and of a pool the number."""
        self._items: tuple[Key, int] = (Key("", "", ""), 0)
        """A list, and how many items of it came so far. A service holds them in records of one size."""

    def add(self, record: Record, now: int) -> None:
        """Count the next record, unless it or what it belongs to has expired at `now`, in Unix ms."""
        kind, key, count = type(record), record[0], 1
        number = record.number if isinstance(record, PoolRecord | HandedRecord) else 0
        if getattr(record, "expires_at", NEVER) <= now:
            if kind in _OWNER_TYPES:
                self._expired.add((kind, key, number))
            return
        if kind in OWNERS and (OWNERS[kind], key, number) in self._expired:
            return
        if isinstance(record, ListItemsRecord):
            before = self._items[1] if self._items[0] == key else 0
            self._items = key, before + len(record.items)
            count = ceil(self._items[1] / ITEMS_PER_RECORD) - ceil(before / ITEMS_PER_RECORD)
        self.counts[kind] += count


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
