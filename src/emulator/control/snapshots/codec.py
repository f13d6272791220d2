"""One record of a snapshot as one line of JSON, and back. Derived from the types in `engines/records.py`. No I/O.

A line is an object with `type`, `key` (trailing empty parts are left out) and the record's fields. Fields with their
usual value are left out. Bytes that are JSON stand in the line as they are; other bytes are in `<name>_text` if they
are UTF-8, otherwise in `<name>_base64`.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Sequence
from typing import Annotated, Any, Final, NamedTuple, Union, get_type_hints

import msgspec
from msgspec import UNSET, Meta, Raw, UnsetType

from emulator.control.snapshots.rules import END, Header, decode_header, invalid
from emulator.core.errors import BadRequest
from emulator.core.keys import NEVER, Key
from emulator.core.wire import json_codec
from emulator.storage.records import TYPES, Record

_MAX_BRACKETS: Final = 200
"""Values with more brackets may be nested so deeply that the line around them could not be decoded."""
_KEY_PARTS: Final = len(Key._fields)
_NO_PARTS: Final = ("",) * _KEY_PARTS
_INTEGER = Annotated[int, Meta(ge=-NEVER, le=NEVER)]
_CONSTRAINTS: Final = {
    "times": Annotated[int, Meta(ge=1, le=NEVER)],
    "number": Annotated[int, Meta(ge=1, le=NEVER)],
    "digest": Annotated[str, Meta(pattern="^[0-9a-f]{32}$")],
    "items": Annotated[tuple[str, ...], Meta(min_length=1)],
}
_USUAL: Final[dict[str, Any]] = {
    "expires_at": NEVER,
    "times": 1,
    "whole": False,
    "source": None,
    "note": b"",
    "definition": None,
}
"""The values of fields that are left out."""
_MAY_HAVE_NUL: Final = ("choice",)
"""Texts that may contain NUL: an answer in a ranking is any text."""
_REQUIRED: Final = object()
_NO_RAW: Final = Raw()


class _Field(NamedTuple):
    """A field of a line."""

    name: str
    is_key: bool
    is_bytes: bool
    usual: Any
    """The value that is left out; `_REQUIRED` if the field is always present."""


class _Shape(NamedTuple):
    """How the records of one type become lines."""

    name: str
    record: type[Any]
    fields: Sequence[_Field]
    line: type[msgspec.Struct]
    """Has these fields in this order, and for bytes three of them."""
    nested: int | None
    """The position of a named tuple in the record. Its fields are fields of the line."""
    inner: Any
    """The type of the named tuple."""
    keys: Sequence[int]
    """The positions of the fields that are keys."""
    bytes_at: int | None
    """The position of the field that is bytes."""


def type_name(record: type[Any]) -> str:
    """Return the name of a type of records in a snapshot, such as `list_items`."""
    return _SHAPES[record].name


def encode_record(record: Record) -> bytes:
    """Return the line of a record, without a comma and a line feed."""
    shape = _SHAPES[type(record)]
    values: tuple[Any, ...] = record
    if shape.nested is not None:
        values = (*values[: shape.nested], *values[shape.nested], *values[shape.nested + 1 :])
    line: dict[str, Any] = {"type": shape.name}
    for field, value in zip(shape.fields, values, strict=True):
        if field.usual is not _REQUIRED and value == field.usual:
            continue
        if field.is_key:
            line[field.name] = _trimmed_key(value)
        elif field.is_bytes:
            form, line_value = _embedded_bytes(value)
            line[field.name + form] = line_value
        else:
            line[field.name] = value
    return json_codec.encode(line)


def decode_record(line: bytes) -> Record:
    """Return the record of a line. Raises `BadRequest` naming the invalid field."""
    try:
        if not line.isascii():
            line.decode()
        found = _decoder.decode(line)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise invalid(0, json_codec.error_text(error)) from None
    shape = _BY_LINE[type(found)]
    values = list(msgspec.structs.astuple(found))
    if (at := shape.bytes_at) is not None:
        values[at : at + 3] = [_extracted_bytes(shape.fields[at], *values[at : at + 3])]
    for position in shape.keys:
        if (parts := values[position]) is not None:
            values[position] = Key(*parts, *_NO_PARTS[len(parts) :])
    if b"\\u0000" in line:
        for field, value in zip(shape.fields, values, strict=True):
            if field.name not in _MAY_HAVE_NUL and _has_nul(value):
                raise invalid(0, "text other than a value must not contain NUL")
    if shape.nested is not None:
        end = shape.nested + len(shape.inner._fields)
        values[shape.nested : end] = [shape.inner(*values[shape.nested : end])]
    record: Record = shape.record(*values)
    return record


def _trimmed_key(key: Key | None) -> list[str | None] | None:
    """Return the parts of a key without the empty parts at its end."""
    if key is None:
        return None
    parts = list(key)
    while len(parts) > 1 and not parts[-1]:
        parts.pop()
    return parts


def _embedded_bytes(value: bytes) -> tuple[str, Raw | str]:
    """Return bytes as a line holds them: the suffix of the field's name (`_text`, `_base64` or none), and the value."""
    try:
        text = value.decode()
    except UnicodeDecodeError:
        return "_base64", base64.b64encode(value).decode()
    if "\n" not in text and "\r" not in text and value == value.strip() and _brackets(value) <= _MAX_BRACKETS:
        try:
            return "", msgspec.json.decode(value, type=Raw)
        except (msgspec.MsgspecError, RecursionError):
            pass
    return "_text", text


def _extracted_bytes(field: _Field, raw: Raw, text: str | UnsetType, encoded: str | UnsetType) -> bytes | None:
    """Return the bytes of a field, from plain JSON, `<name>_text` or `<name>_base64`. Raises `BadRequest`."""
    if raw is not _NO_RAW and text is UNSET and encoded is UNSET:
        return bytes(raw)
    if (raw is not _NO_RAW) + (text is not UNSET) + (encoded is not UNSET) > 1:
        raise invalid(0, f"{field.name}: must be there in one form only")
    if text is not UNSET:
        return text.encode()
    if encoded is not UNSET:
        try:
            return base64.b64decode(encoded, validate=True)
        except (binascii.Error, ValueError):
            raise invalid(0, f"{field.name}_base64: must be base64") from None
    if field.usual is _REQUIRED:
        raise invalid(0, f"the object misses the field `{field.name}`")
    absent: bytes | None = field.usual
    return absent


def _brackets(value: bytes) -> int:
    return value.count(b"[") + value.count(b"{")


def _has_nul(value: object) -> bool:
    return (isinstance(value, str) and "\0" in value) or (
        isinstance(value, tuple) and any("\0" in each for each in value)
    )


def _shape_of(record: type[Any]) -> _Shape:
    nested, inner = None, None
    fields: list[_Field] = []
    line_fields: list[tuple[str, Any] | tuple[str, Any, Any]] = []
    for position, (outer, outer_hint) in enumerate(get_type_hints(record).items()):
        hints, usual = {outer: outer_hint}, _USUAL
        if outer_hint is not Key and hasattr(outer_hint, "_fields"):
            nested, inner = position, outer_hint
            hints, usual = get_type_hints(inner), {**_USUAL, **inner._field_defaults}
        for name, hint in hints.items():
            name = name if fields else "key"
            is_key, is_bytes = hint in (Key, Key | None), hint in (bytes, bytes | None)
            field = _Field(name, is_key, is_bytes, usual.get(name, _REQUIRED))
            fields.append(field)
            if is_bytes:
                line_fields += [(name, Raw, _NO_RAW)]
                line_fields += [(f"{name}_{form}", str | UnsetType, UNSET) for form in ("text", "base64")]
                continue
            shape = _CONSTRAINTS.get(name, _INTEGER if hint is int else hint)
            if is_key:
                parts = Annotated[list[str], Meta(min_length=1, max_length=_KEY_PARTS)]
                shape = parts if hint is Key else parts | None
            line_fields.append((name, shape) if field.usual is _REQUIRED else (name, shape, field.usual))
    letters = record.__name__.removesuffix("Record")
    tag = "".join(f"_{each.lower()}" if each.isupper() else each for each in letters).lstrip("_")
    line = msgspec.defstruct(tag, line_fields, tag_field="type", tag=tag, forbid_unknown_fields=True, kw_only=True)
    keys = [position for position, field in enumerate(fields) if field.is_key]
    bytes_at = next((position for position, field in enumerate(fields) if field.is_bytes), None)
    return _Shape(tag, record, fields, line, nested, inner, keys, bytes_at)


_SHAPES: Final = {record: _shape_of(record) for record in TYPES}
_BY_LINE: Final = {shape.line: shape for shape in _SHAPES.values()}
_decoder: Final = msgspec.json.Decoder(Union[tuple(_BY_LINE)])  # noqa: UP007


_MAX_LINE: Final = 64 * 1024 * 1024
"""Bytes in one line."""


class SnapshotReader:
    """Takes a snapshot in pieces of any size. Every error is a `BadRequest` with the number of the line."""

    def __init__(self) -> None:
        self.header: Header | None = None
        """The first line, once it was read."""
        self.line = 0
        """The lines so far, which is the number of the last one."""
        self._rest: list[bytes] = []
        """Pieces of the line that is not complete."""
        self._rest_size = 0
        self._has_records = False
        self._expects_record = False
        """Whether the last line ended with a comma."""
        self._is_complete = False

    def feed(self, piece: bytes) -> list[tuple[int, Record]]:
        """Take the next bytes, and return the records that they complete, with the numbers of their lines."""
        *lines, rest = piece.split(b"\n")
        records = []
        for each in lines:
            if self._rest:
                each = b"".join((*self._rest, each))
                self._rest.clear()
                self._rest_size = 0
            self.line += 1
            record = self._read(each.strip())
            if record is not None:
                records.append((self.line, record))
        if rest:
            self._rest.append(rest)
            self._rest_size += len(rest)
            if self._rest_size > _MAX_LINE:
                raise invalid(self.line + 1, f"the line has more than {_MAX_LINE:,} bytes")
        return records

    def finish(self) -> Header:
        """Check that the snapshot is complete, and return its header."""
        if self._rest:
            self.feed(b"\n")
        if not self._is_complete or self.header is None:
            raise invalid(max(self.line, 1), "the snapshot is incomplete: its last line `]}` is missing")
        return self.header

    def _read(self, line: bytes) -> Record | None:
        if self.header is None:
            self.header = decode_header(line)
            return None
        if self._is_complete:
            if line:
                raise invalid(self.line, "there is text after the end of the snapshot")
            return None
        if line == END.strip():
            if self._expects_record:
                raise invalid(self.line - 1, "the last record must not end with a comma")
            self._is_complete = True
            return None
        if self._has_records and not self._expects_record:
            raise invalid(self.line - 1, "the line must end with a comma, because another record follows")
        self._expects_record, self._has_records = line.endswith(b","), True
        try:
            return decode_record(line.removesuffix(b","))
        except BadRequest as error:
            raise invalid(self.line, "; ".join(error.details)) from None
