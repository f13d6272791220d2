"""Bodies of plain HTML forms, which the control API accepts in addition to JSON."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from emulator.http.refusals import ambiguous_form
from emulator.wire import json_codec
from emulator.wire.refusals import invalid_member
from emulator.wire.url import query_of

_FORM: Final = b"application/x-www-form-urlencoded"
_JSON_STARTS: Final = (b"{", b"[", b'"')


def json_of(body: bytes, headers: Mapping[bytes, bytes], shape: Any) -> bytes:
    """Return the body as JSON of this type, if it is a form; otherwise unchanged. Fields without a value are left out.

    The field `body.event` is the member `event` of the object `body`, at any depth. A name that ends with `:json` has
    JSON as its value, as `body.data:json`; one that ends with `:lines` has a list with its lines that are not empty.
    The first of a repeated field counts. A body that starts as JSON is never a form: curl sends JSON with a form's
    content type by default, and browsers escape these characters. Raises `BadRequest` naming a field of a wrong type.
    """
    is_form = headers.get(b"content-type", b"").startswith(_FORM) and b"=" in body
    if not is_form or body.lstrip().startswith(_JSON_STARTS):
        return body
    fields = _members({name: value for name, value in query_of(body).items() if value})
    try:
        return json_codec.encode(msgspec.convert(fields, shape, strict=False))
    except msgspec.ValidationError as error:
        raise json_codec.misshapen(error) from None


def _members(fields: Mapping[str, str]) -> dict[str, Any]:
    """Return the members of the JSON object that the fields of a form describe. Raises `BadRequest`."""
    found: dict[str, Any] = {}
    for field, text in fields.items():
        name, _, kind = field.partition(":")
        *outer, last = name.split(".")
        members, place = found, ""
        for part in outer:
            place = f"{place}.{part}" if place else part
            members = members.setdefault(part, {})
            if not isinstance(members, dict):
                raise ambiguous_form(field=place, other=name)
        if last in members:
            raise ambiguous_form(field=name)
        members[last] = _value(name, kind, text)
    return found


def _value(name: str, kind: str, text: str) -> Any:
    if kind == "lines":
        return [line for line in text.splitlines() if line]
    return _parsed(name, text) if kind == "json" else text


def _parsed(name: str, text: str) -> Any:
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        raise invalid_member(name, text, "JSON; a text has double quotes") from None
