"""JSON encoding and decoding, and the body of error replies (rulings W2, W3, W4)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any, TypeVar

import msgspec

from emulator.errors import BadRequest, ServiceError

T = TypeVar("T")

MALFORMED = "Malformed json body"

_encoder = msgspec.json.Encoder()
_any = msgspec.json.Decoder()
_decoders: dict[type[Any], msgspec.json.Decoder[Any]] = {}
"""One for each shape, as looking up a type costs as much as decoding a vote."""


def encode(value: object) -> bytes:
    """Compact UTF-8 JSON."""
    return _encoder.encode(value)


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
    """`start`, the items of all pages with commas between them, and `end`. Sends nothing before the first page."""
    before = start
    async for page in pages:
        if page:
            yield before + b",".join(page)
            before = b","
    yield end if before == b"," else start + end


def decode(raw: bytes, shape: type[T]) -> T:
    """Decode a body as `shape`. A JSON string is decoded a second time.

    NaN, Infinity and lone surrogates are rejected; the last of duplicate keys wins; unknown fields are ignored.
    Raises `BadRequest` with reason `Malformed json body` for invalid JSON, and `Invalid body` for another shape.
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
            raise BadRequest("Invalid body", error_text(error)) from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BadRequest(MALFORMED, f"the body is not valid JSON: {error_text(error)}") from None
    return _decode_inner(raw, shape)


def decode_any(raw: bytes) -> Any:
    """Decode a body of any JSON. A string that contains an object or array is decoded a second time."""
    try:
        value = _any.decode(raw)
    except msgspec.ValidationError as error:
        raise BadRequest("Invalid body", error_text(error)) from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BadRequest(MALFORMED, f"the body is not valid JSON: {error_text(error)}") from None
    return _unwrapped(value) if isinstance(value, str) else value


def _unwrapped(text: str) -> Any:
    try:
        inner = _any.decode(text)
    except (msgspec.MsgspecError, RecursionError):
        return text
    return inner if isinstance(inner, dict | list) else text


def _decode_inner(raw: bytes, shape: type[T]) -> T:
    try:
        return msgspec.json.decode(_any.decode(raw), type=shape)
    except msgspec.ValidationError as error:
        raise BadRequest("Invalid body", error_text(error)) from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BadRequest(MALFORMED, f"the string in the body is not valid JSON: {error_text(error)}") from None


def convert(value: object, shape: type[T], *, inside: str) -> T:
    """Convert a decoded value to `shape`; raises `BadRequest` naming the member as `<inside>.<member>`."""
    try:
        return msgspec.convert(value, shape)
    except msgspec.ValidationError as error:
        field, colon, text = error_text(error).rpartition(": ")
        raise BadRequest("Invalid body", f"{inside}.{field}: {text}" if colon else f"{inside}: {text}") from None


def are_equal(one: Any, other: Any) -> bool:
    """Whether two decoded values are the same JSON: 1 equals 1.0, but not `true`."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(map(are_equal, one.values(), map(other.__getitem__, one)))
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(are_equal, one, other))
    return isinstance(one, bool) == isinstance(other, bool) and bool(one == other)


def error_text(error: Exception) -> str:
    """The decoder's message, starting with the field's name."""
    if isinstance(error, RecursionError):
        return "nested too deeply"
    text, _, place = str(error).partition(" - at `$")
    field = place.rstrip("`").lstrip(".")
    text = text if text.startswith("JSON") else f"{text[:1].lower()}{text[1:]}"
    return f"{field}: {text}" if field else text
