"""Bodies of plain HTML forms, which the control API accepts beside JSON."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from emulator.errors import BadRequest
from emulator.wire import json_codec
from emulator.wire.query import query_of

_FORM: Final = b"application/x-www-form-urlencoded"
_JSON_STARTS: Final = (b"{", b"[", b'"')


def json_of(body: bytes, headers: Mapping[bytes, bytes], shape: Any) -> bytes:
    """Return the body as JSON of this shape, if it is a form; else unchanged. Fields without a value are left out.

    A body that starts as JSON is never a form: curl sends JSON with a form's content type by default, and browsers
    escape these characters. The first of a repeated field counts. Raises `BadRequest` naming a field of a wrong type.
    """
    is_form = headers.get(b"content-type", b"").startswith(_FORM) and b"=" in body
    if not is_form or body.lstrip().startswith(_JSON_STARTS):
        return body
    fields = {name: value for name, value in query_of(body).items() if value}
    try:
        return json_codec.encode(msgspec.convert(fields, shape, strict=False))
    except msgspec.ValidationError as error:
        raise BadRequest("Invalid body", json_codec.error_text(error)) from None
