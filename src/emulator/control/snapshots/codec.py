"""The format of a snapshot: its lines, as records and back. No I/O apart from reading the lines of an open file.

A snapshot is one JSON document. Its first line is the header, its last line `]}`, and each line between is one record,
in the order of `storage/records.py`. Only the header changes with the version of extcli, and nothing in it is the time
of saving, so equal data give equal snapshots.

The line of a record is an object with `type`, `key` (trailing empty parts are left out) and the record's fields. Fields
with their usual value are left out. Bytes that are JSON stand in the line as they are; other bytes are in `<name>_text`
if they are UTF-8, otherwise in `<name>_base64`.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import IO, Annotated, Any, ClassVar, Union, cast, get_type_hints

import msgspec
from msgspec import UNSET, Meta, Raw, UnsetType

from emulator.core.clock import ClockState, clamp_instant
from emulator.core.errors import BadRequest, Facts, refusal
from emulator.core.keys import NEVER, Key
from emulator.core.wire import json_codec
from emulator.storage.records import TYPES, DocumentRecord, Record
from emulator.storage.shapes import BallotEntry, Terms


@refusal(BadRequest, "Invalid snapshot", "docs: Snapshots", "The snapshot is invalid",
         "Save it again: `extcli snapshot save FILE`.")  # fmt: skip
def invalid(line: int, problem: str) -> Facts:
    """A line of a snapshot is invalid. `line` counts from 1."""
    detail = f"line {line}: {problem}"
    return Facts(detail, detail, "an unchanged snapshot")


FORMAT = 1
"""The format that this version writes, and the only one that it reads."""
LAST_LINE = b"]}\n"
SECRET_KINDS = frozenset({"signing_key", "pin", "pin_token", "link"})
"""Kinds of documents that are only saved with the keys: the key that signs tokens, and the records behind tokens."""
_RECORDS_START = b',"records":['
_MAX_LINE = 64 * 1024 * 1024
"""Bytes in one line."""
PAGE_BYTES = 8 * 1024
"""Bytes that are decoded, and written to storage, before other requests run: about 1 ms."""


def is_secret(record: Record) -> bool:
    """Whether the record is only saved with the keys."""
    return type(record) is DocumentRecord and record.key.kind in SECRET_KINDS


class SnapshotHeader(msgspec.Struct):
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


class _FormatHeader(msgspec.Struct):
    """The fields of a snapshot's header that every version of the format has."""

    extcli_snapshot: int


def encode_header(header: SnapshotHeader) -> bytes:
    """Return the first line."""
    return json_codec.encode(header)[:-1] + _RECORDS_START + b"\n"


def read_header(file: IO[bytes]) -> SnapshotHeader:
    """Read the first line. Raises `BadRequest`."""
    line = file.readline(_MAX_LINE).strip()
    if line.startswith(b"\x1f\x8b"):
        raise invalid(1, "the snapshot is compressed; its file name must end in .gz")
    if not line.endswith(_RECORDS_START):
        raise invalid(1, "this is not the first line of a snapshot; a reformatted snapshot cannot be loaded")
    try:
        document = line.removesuffix(_RECORDS_START) + b"}"
        number = msgspec.json.decode(document, type=_FormatHeader).extcli_snapshot
        if number != FORMAT:
            raise invalid(1, f"extcli_snapshot: format {number} is unknown; this version reads format {FORMAT}")
        return msgspec.json.decode(document, type=SnapshotHeader)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise invalid(1, json_codec.error_text(error)) from None


def check_header(header: SnapshotHeader, environment: str, now: int) -> None:
    """Raise `BadRequest` for a snapshot of another environment, or of a time that a clock cannot show.

    `now` is the system time in Unix ms.
    """
    if header.environment != environment:
        problem = f"the snapshot is from {header.environment[:40]!r}, but this service is {environment}"
        raise invalid(1, f"environment: {problem}")
    clock = header.clock
    instant = now + clock.offset if clock.frozen_at is None else clock.frozen_at
    if instant != clamp_instant(instant):
        raise invalid(1, "clock: must show a time from 1970 to 9999")


def read_records(file: IO[bytes]) -> Iterator[list[tuple[int, Record]]]:
    """Yield the records that follow the header with the numbers of their lines, page by page.

    Raises `BadRequest` for an invalid line, and at the end for an incomplete snapshot.
    """
    page, size, number, is_complete = list[tuple[int, Record]](), 0, 1, False
    before = b""
    while line := file.readline(_MAX_LINE):
        number, size, text = number + 1, size + len(line), line.strip()
        if len(line) == _MAX_LINE:
            raise invalid(number, f"the line has {_MAX_LINE:,} bytes or more")
        if is_complete:
            if text:
                raise invalid(number, "there is text after the end of the snapshot")
        elif text == LAST_LINE.strip():
            if before.endswith(b","):
                raise invalid(number - 1, "the last record must not end with a comma")
            is_complete = True
        elif before and not before.endswith(b","):
            raise invalid(number - 1, "the line must end with a comma, because another record follows")
        else:
            page.append((number, decode_record(text.removesuffix(b","), number)))
            before = text
        if size >= PAGE_BYTES:
            yield page
            page, size = [], 0
    if not is_complete:
        raise invalid(number, "the snapshot is incomplete: its last line `]}` is missing")
    yield page


_MAX_BRACKETS = 200
"""Values with more brackets may be nested so deeply that the line around them could not be decoded."""
_KEY_PARTS = len(Key._fields)
_INTEGER_TYPE = Annotated[int, Meta(ge=0, le=NEVER)]
_KEY_TYPE = Annotated[list[str], Meta(min_length=1, max_length=_KEY_PARTS)]
_COUNT_TYPE = Annotated[int, Meta(ge=1, le=NEVER)]
_STRICTER_TYPES: dict[Any, Any] = {int: _INTEGER_TYPE, Key: _KEY_TYPE, Key | None: _KEY_TYPE | None}
_STRICTER_FIELDS: dict[str, Any] = {
    "times": _COUNT_TYPE,
    "number": _COUNT_TYPE,
    "digest": Annotated[str, Meta(pattern=r"^[0-9a-f]{32}\Z")],
    "items": Annotated[tuple[str, ...], Meta(min_length=1)],
}
"""The types of fields of a line that allow less than the fields of records."""
_OMITTED_VALUES: dict[str, Any] = {
    "expires_at": NEVER,
    "times": 1,
    "source": None,
    "note": b"",
    "definition": None,
    **Terms._field_defaults,
}
"""The values of fields that are left out."""
_REQUIRED = object()
"""The usual value of a field that is always present."""
_FIELDS_WITH_NUL = {"choice"}
"""Texts that may contain NUL: an answer in a ranking is any text."""


class _Line(msgspec.Struct):
    """A line. There is a subclass for each type of records, whose name is the `type` of the line."""

    record: ClassVar[type[Any]]
    nested: ClassVar[tuple[str, type[Any]] | None]
    """A field of the record that is a named tuple, and its type. Its fields are fields of the line."""
    of_bytes: ClassVar[str]
    """The field that is bytes, of which the line has three forms; empty if none is."""


@cache
def _line_types() -> Mapping[type[Record], type[_Line]]:
    return {record: _make_line_type(record) for record in TYPES}


@cache
def _decoder() -> msgspec.json.Decoder[_Line]:
    return msgspec.json.Decoder(Union[tuple(_line_types().values())])  # noqa: UP007


def _make_line_type(record: type[Record]) -> type[_Line]:
    constants: dict[str, Any] = {"record": record, "nested": None, "of_bytes": ""}
    types: dict[str, Any] = {"key": _KEY_TYPE}
    for name, kind in list(get_type_hints(record).items())[1:]:
        if kind in (Terms, BallotEntry):
            constants["nested"] = name, kind
            types |= get_type_hints(kind)
        else:
            types[name] = kind
    fields: list[tuple[str, Any] | tuple[str, Any, Any]] = []
    for name, kind in types.items():
        if kind in (bytes, bytes | None):
            constants["of_bytes"] = name
            fields.append((name, Raw | UnsetType, UNSET))
            fields += [(f"{name}_{form}", str | UnsetType, UNSET) for form in ("text", "base64")]
        else:
            allowed = _STRICTER_FIELDS.get(name) or _STRICTER_TYPES.get(kind, kind)
            fields.append((name, allowed, _OMITTED_VALUES[name]) if name in _OMITTED_VALUES else (name, allowed))
    name = re.sub("(?<!^)(?=[A-Z])", "_", record.__name__.removesuffix("Record")).lower()
    made = msgspec.defstruct(name, fields, bases=(_Line,), namespace=constants, tag_field="type", tag=name,
                             forbid_unknown_fields=True, kw_only=True)  # fmt: skip
    return cast("type[_Line]", made)


def type_name(record: Record) -> str:
    """Return the name of the type of a record in a snapshot, such as `list_items`."""
    return _line_types()[type(record)].__name__


def encode_record(record: Record) -> bytes:
    """Return the line of a record, without a comma and a line feed."""
    fields: dict[str, Any] = {"key": record[0]}
    for name, value in zip(record._fields[1:], record[1:], strict=True):
        fields |= value._asdict() if isinstance(value, Terms | BallotEntry) else {name: value}
    line: dict[str, Any] = {"type": type_name(record)}
    for name, value in fields.items():
        if value == _OMITTED_VALUES.get(name, _REQUIRED):
            continue
        if isinstance(value, Key):
            line[name] = _trimmed_key(value)
        elif isinstance(value, bytes):
            suffix, shown = _bytes_for_line(value)
            line[name + suffix] = shown
        else:
            line[name] = value
    return json_codec.encode(line)


def decode_record(line: bytes, number: int) -> Record:
    """Return the record of the line with this number. Raises `BadRequest` naming the invalid field."""
    try:
        if not line.isascii():
            line.decode()
        found = _decoder().decode(line)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise invalid(number, json_codec.error_text(error)) from None
    fields = msgspec.structs.asdict(found)
    if found.of_bytes:
        try:
            fields[found.of_bytes] = _bytes_from_line(fields, found.of_bytes)
        except ValueError as error:
            raise invalid(number, str(error)) from None
    for name, value in fields.items():
        if isinstance(value, list):
            fields[name] = Key(*value, *[""] * (_KEY_PARTS - len(value)))
    for name in fields.keys() - _FIELDS_WITH_NUL if b"\\u0000" in line else ():
        if _has_nul(fields[name]):
            raise invalid(number, f"{name}: must not contain NUL")
    if found.nested:
        name, inner = found.nested
        fields[name] = inner(**{each: fields.pop(each) for each in inner._fields})
    record: Record = found.record(fields.pop("key"), **fields)
    return record


def _trimmed_key(key: Key) -> list[str | None]:
    """Return the parts of a key without the empty parts at its end."""
    parts = list(key)
    while len(parts) > 1 and not parts[-1]:
        parts.pop()
    return parts


def _bytes_for_line(value: bytes) -> tuple[str, Raw | str]:
    """Return bytes as a line holds them: the suffix of the field's name (`_text`, `_base64` or none), and the value."""
    try:
        text = value.decode()
    except UnicodeDecodeError:
        return "_base64", base64.b64encode(value).decode()
    brackets = value.count(b"[") + value.count(b"{")
    if "\n" not in text and "\r" not in text and value == value.strip() and brackets <= _MAX_BRACKETS:
        try:
            return "", msgspec.json.decode(value, type=Raw)
        except (msgspec.MsgspecError, RecursionError):
            pass
    return "_text", text


def _bytes_from_line(fields: dict[str, Any], name: str) -> bytes | None:
    """Take the three forms of a field out of a line, and return its bytes. Raises `ValueError`."""
    given = [fields.pop(name), fields.pop(f"{name}_text"), fields.pop(f"{name}_base64")]
    raw, text, encoded = given
    if given.count(UNSET) < 2:
        raise ValueError(f"give exactly one of {name}, {name}_text and {name}_base64")
    if raw is not UNSET:
        return bytes(raw)
    if text is not UNSET:
        return bytes(text.encode())
    if encoded is not UNSET:
        try:
            return base64.b64decode(encoded, validate=True)
        except (binascii.Error, ValueError):
            raise ValueError(f"{name}_base64: must be base64") from None
    if name not in _OMITTED_VALUES:
        raise ValueError(f"the field `{name}` is missing")
    absent: bytes | None = _OMITTED_VALUES[name]
    return absent


def _has_nul(value: object) -> bool:
    return (isinstance(value, str) and "\0" in value) or (
        isinstance(value, tuple) and any("\0" in each for each in value)
    )
