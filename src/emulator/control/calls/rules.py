"""The limits of a call as another caller, and its parts. No I/O."""

from __future__ import annotations

import string
from typing import Any, Final
from urllib.parse import quote

import msgspec
from msgspec import Struct

from emulator.callers import Role
from emulator.contract.limits import MAX_USER_LENGTH
from emulator.contract.names import CLIENT_ID_RULE, is_client_id
from emulator.wire import json_codec
from emulator.wire.refusals import invalid_member, missing_member, wrong_shape
from emulator.wire.url import SERVICE

MAX_RESPONSE: Final = 1024 * 1024
"""Bytes of a response that are returned."""
CUT: Final = f"the response is longer than {MAX_RESPONSE:,} bytes; this is its beginning, as text"


class CallBody(Struct):
    """A request of the service API, and the caller who makes it."""

    path: str
    """Path and query, such as `/v1/e/vote?id=rps`."""
    client_id: str
    method: str = "GET"
    body: Any = None
    """A string is sent as it is, and anything else as JSON; `null` sends no body."""
    role: Role = Role.VIEWER
    user_id: str = ""
    """The platform's user id; empty for a user who has not shared it."""
    channel_id: str = ""
    opaque_user_id: str = ""


def checked_call(body: CallBody) -> CallBody:
    """Return a valid call. Raises `BadRequest` naming the field."""
    if not body.path.startswith(SERVICE):
        raise invalid_member("path", body.path, f"a path of the service API, which starts with {SERVICE}")
    if not body.client_id:
        raise missing_member("client_id")
    if not is_client_id(body.client_id):
        raise invalid_member("client_id", body.client_id, CLIENT_ID_RULE)
    for name in ("user_id", "channel_id", "opaque_user_id"):
        text: str = getattr(body, name)
        if len(text) > MAX_USER_LENGTH or not text.isprintable():
            raise wrong_shape(name, needed=f"at most {MAX_USER_LENGTH} printable characters")
    return body


def target_of(path: str) -> tuple[str, bytes]:
    """Split a path into the path alone, and the query as it is sent."""
    plain, _, query = path.partition("?")
    return plain, quote(query, safe=string.punctuation).encode()


def body_bytes(body: Any) -> bytes:
    """Return the body to send, as bytes."""
    if body is None:
        return b""
    return body.encode() if isinstance(body, str) else json_codec.encode(body)


def shown_body(answer: bytes, *, is_json: bool) -> Any:
    """Return a response as a member of the outer response: JSON unchanged, anything else as text."""
    if is_json and answer:
        try:
            msgspec.json.decode(answer)
            return msgspec.Raw(answer)
        except msgspec.DecodeError:
            pass
    return answer.decode(errors="replace")
