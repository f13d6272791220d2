"""JSON encoding and decoding, and the body of error replies (rulings W2, W3, W4)."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from typing import Annotated, Any, TypeVar, get_args

import msgspec
from msgspec import structs

from emulator.core.errors import ServiceError
from emulator.core.wire.refusals import malformed_json, missing_member, too_deep, wrong_shape

T = TypeVar("T")
Milliseconds = Annotated[int, msgspec.Meta(description="ms")]
"""A duration. Errors and the OpenAPI document have its unit."""

encode = msgspec.json.Encoder().encode
"""Encodes a value as compact UTF-8 JSON."""
_DECODE_FAILURES = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""Errors of a text that is not JSON."""
_any_decoder = msgspec.json.Decoder()
_decoders: dict[type[Any], msgspec.json.Decoder[Any]] = {}
"""One for each shape, as looking up a type costs as much as decoding a vote."""


def error_body(error: ServiceError) -> bytes:
    """Serialize an error: `errors` as on the socket, and `reason` and `info` for REST clients, with the same facts."""
    return encode(
        {
            "errors": [{"status": error.status, "title": error.title, "detail": detail} for detail in error.details],
            "reason": error.reason,
            "info": "; ".join(error.details),
        }
    )


async def stream_array(start: bytes, pages: AsyncIterator[list[bytes]], end: bytes) -> AsyncIterator[bytes]:
    """Yield `start`, the items of all pages with commas between them, and `end`.

    Yields nothing before the first page is read.
    """
    before = start
    async for page in pages:
        if page:
            yield before + b",".join(page)
            before = b","
    yield end if before == b"," else start + end


def decode(raw: bytes, shape: type[T]) -> T:
    """Decode a body as `shape`. A JSON string is decoded a second time.

    NaN, Infinity and lone surrogates are rejected; the last of duplicate keys wins; unknown fields are ignored.
    Raises `BadRequest` with reason `Malformed json body` for invalid JSON, and `Invalid body` for another type.
    """
    try:
        if not raw.isascii():
            raw.decode()  # msgspec does not validate strings in fields that it skips
        decoder = _decoders.get(shape)
        if decoder is None:
            decoder = _decoders[shape] = msgspec.json.Decoder(shape)
        decoded: T = decoder.decode(raw)
        return decoded
    except msgspec.ValidationError as error:
        if not raw.lstrip().startswith(b'"'):
            raise shape_error(error, shape=shape) from None
    except _DECODE_FAILURES as error:
        raise _decode_error(error, raw) from None
    return _decode_inner(raw, shape)


def decode_any(raw: bytes) -> Any:
    """Decode a body of any JSON. A string that contains an object or array is decoded a second time."""
    try:
        value = _any_decoder.decode(raw)
    except msgspec.ValidationError as error:  # a number out of range
        raise shape_error(error) from None
    except _DECODE_FAILURES as error:
        raise _decode_error(error, raw) from None
    return _decode_wrapped(value) if isinstance(value, str) else value


def _decode_wrapped(text: str) -> Any:
    try:
        inner = _any_decoder.decode(text)
    except (msgspec.MsgspecError, RecursionError):
        return text
    return inner if isinstance(inner, dict | list) else text


def _decode_inner(raw: bytes, shape: type[T]) -> T:
    try:
        return msgspec.json.decode(_any_decoder.decode(raw), type=shape)
    except msgspec.ValidationError as error:
        raise shape_error(error) from None
    except _DECODE_FAILURES as error:
        raise _decode_error(error, what="the string in the body") from None


def convert(value: object, shape: type[T], *, inside: str) -> T:
    """Convert a decoded value to `shape`; raises `BadRequest` naming the member as `<inside>.<member>`."""
    try:
        return msgspec.convert(value, shape)
    except msgspec.ValidationError as error:
        raise shape_error(error, inside) from None


_PLACE_MARK = " - at `$"
_JSON_TYPES = {
    "str": "a string",
    "int": "an integer",
    "float": "a number",
    "bool": "true or false",
    "array": "an array",
    "object": "an object",
    "datetime": "a date and time",
}
"""The decoder's names of kinds of values, in words of JSON; it has others for no shape of this service."""
_QUOTED_TYPE = re.compile(r"`([^`]*)`")
_IS_MISSING = "is missing"
_MISSING_FIELD = re.compile(r"Object missing required field `([^`]*)`")


def error_text(error: Exception) -> str:
    """Return the decoder's message with JSON's terms instead of Python's, starting with the field's name."""
    field, problem = _field_and_problem(error)
    return f"{field}: {problem}" if field else problem


def shape_error(error: msgspec.ValidationError, inside: str = "", *, shape: Any = None) -> ServiceError:
    """Return the error for a value of the wrong type. `inside` names the member, if the value is not the whole body.

    `shape` is the type of the body, whose members may have a unit.
    """
    found, problem = _field_and_problem(error)
    field = ".".join(filter(None, (inside, found)))
    if problem == _IS_MISSING:
        return missing_member(field)
    if not problem.startswith("expected "):
        return wrong_shape(field, problem=problem, needed="a value as /schema/openapi.json of the service describes it")
    needed, _, held = problem.removeprefix("expected ").partition(", got ")
    if unit := _member_unit(shape, found):
        problem, needed = f"{problem}; the unit is {unit}", f"{needed} in {unit}"
    return wrong_shape(field=field, problem=problem, held=held, needed=needed)


def _member_unit(shape: Any, name: str) -> str:
    """Return the unit of a member of a body; empty for none."""
    if not isinstance(shape, type) or not issubclass(shape, msgspec.Struct):
        return ""
    for field in structs.fields(shape):
        for kind in get_args(field.type) if field.encode_name == name else ():
            for meta in getattr(kind, "__metadata__", ()):
                unit: str = meta.description or ""
                return unit
    return ""


_ENCODING_SIGNS = re.compile(
    rb"(?:(?P<gzip>\x1f\x8b)|(?P<deflate>x[\x01^\x9c\xda])|(?P<zstd>\(\xb5/\xfd)|(?P<zip>PK\x03\x04)|(?P<mark>\xef\xbb\xbf)"
    rb"|(?P<utf_32>\xff\xfe\0\0|\0\0(?:\xfe\xff|\0.)|.\0\0\0)|(?P<utf_16>\xff\xfe|\xfe\xff|\0.|.\0))",
    re.DOTALL,
)
_SURROGATE = re.compile(rb"\\u[dD][89abAB]\w\w\\u[dD][c-fC-F]\w\w|(\\u[dD][89a-fA-F]\w\w)|\\.")
"""A pair; a lone one in group 1; any other escape, so that its end begins none."""


def encoding_problem(raw: bytes) -> str:
    """Return the encoding of a text by its first bytes, with what to send instead; empty for UTF-8."""
    found = _ENCODING_SIGNS.match(raw)
    name = found.lastgroup if found else None
    if name == "mark":
        return "it begins with a byte order mark; send UTF-8 without it"
    if name and name.startswith("utf"):
        return f"it is {name.upper().replace('_', '-')}; send UTF-8"
    return f"it is compressed with {name}; send it uncompressed" if name else ""


def decode_problem(error: Exception, raw: bytes) -> str:
    """Return why a text is not JSON: its encoding, if that is the reason, otherwise the decoder's message."""
    text = error_text(error).removeprefix("JSON is malformed: ")
    if problem := encoding_problem(raw):
        return problem
    try:
        raw.decode()
    except UnicodeDecodeError as found:
        first, second = (raw[found.start :] + b"\0")[:2]
        if first == 0xED and second >= 0xA0:
            return f"it has a lone surrogate in UTF-8: bytes {first:x} {second:x}"
        return f"it is not UTF-8: byte {first:#x}"
    if "truncated" in text or "surrogate" in text:
        for each in _SURROGATE.finditer(raw):
            if each[1]:
                return f"it has the lone surrogate {each[1].decode()}"
    return text


def _decode_error(error: Exception, raw: bytes = b"", *, what: str = "the body") -> ServiceError:
    """Return the error for a text that is not JSON, or that is nested too deeply."""
    if isinstance(error, RecursionError):
        return too_deep(reason="Malformed json body", what=what)
    return malformed_json(what=what, problem=decode_problem(error, raw))


def _field_and_problem(error: Exception) -> tuple[str, str]:
    """Return the field (empty if none) and the problem that a decoder's error states."""
    if isinstance(error, RecursionError):
        return "", "nested too deeply"
    text, _, place = str(error).partition(_PLACE_MARK)
    field = place.rstrip("`").lstrip(".")
    if missing := _MISSING_FIELD.fullmatch(text):
        return ".".join(filter(None, (field, missing[1]))), _IS_MISSING
    text = text if text.startswith("JSON") else f"{text[:1].lower()}{text[1:]}"
    return field, _QUOTED_TYPE.sub(_json_type_text, text) if text.startswith("expected") else text


def _json_type_text(kinds: re.Match[str]) -> str:
    return " or ".join(_JSON_TYPES.get(each, each) for each in kinds[1].split(" | "))
