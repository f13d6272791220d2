"""JSON as it arrives and leaves (rulings W2, W3): strict values, tolerant wrapping, compact text."""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec

from emulator.errors import BadRequest

T = TypeVar("T")

MALFORMED = "Malformed json body"

_encoder = msgspec.json.Encoder()
_any = msgspec.json.Decoder()


def encode(value: object) -> bytes:
    """Compact UTF-8 JSON."""
    return _encoder.encode(value)


def decode(raw: bytes, shape: type[T]) -> T:
    """Read a body as `shape`. A body that is a JSON *string* is parsed once more.

    NaN, Infinity and lone surrogates are refused; of duplicate keys the last wins; unknown fields are ignored.
    Raises `BadRequest` with reason `Malformed json body` for text that is no JSON, `Invalid body` for another shape.
    """
    try:
        if not raw.isascii():
            raw.decode()  # msgspec does not look into the texts of fields it skips
        return msgspec.json.decode(raw, type=shape)
    except msgspec.ValidationError as error:
        if not raw.lstrip().startswith(b'"'):
            raise BadRequest("Invalid body", error_text(error)) from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BadRequest(MALFORMED, f"the body is not readable as JSON: {error_text(error)}") from None
    return _decode_inner(raw, shape)


def decode_any(raw: bytes) -> Any:
    """Read a body of any JSON. A string that holds an object or array is read as that; another stays a string."""
    try:
        value = _any.decode(raw)
    except msgspec.ValidationError as error:
        raise BadRequest("Invalid body", error_text(error)) from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BadRequest(MALFORMED, f"the body is not readable as JSON: {error_text(error)}") from None
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
        raise BadRequest(MALFORMED, f"the text inside the body is not readable as JSON: {error_text(error)}") from None


def convert(value: object, shape: type[T], *, inside: str) -> T:
    """Read a decoded value as `shape`; raises `BadRequest` naming the member, as one of `inside`."""
    try:
        return msgspec.convert(value, shape)
    except msgspec.ValidationError as error:
        field, colon, text = error_text(error).rpartition(": ")
        raise BadRequest("Invalid body", f"{inside}.{field}: {text}" if colon else f"{inside}: {text}") from None


def error_text(error: Exception) -> str:
    """The decoder's words, with `$.value` turned into the field's name."""
    if isinstance(error, RecursionError):
        return "nested too deeply"
    text, _, place = str(error).partition(" - at `$")
    field = place.rstrip("`").lstrip(".")
    text = text if text.startswith("JSON") else f"{text[:1].lower()}{text[1:]}"
    return f"{field}: {text}" if field else text
