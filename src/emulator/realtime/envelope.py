"""The JSON envelope of WebSocket messages: parsing of requests, serialization of replies and updates (X2, X3)."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Struct

from emulator.core.errors import ServiceError
from emulator.core.wire import json_codec
from emulator.realtime import refusals

NO_REQUEST = 65_535
"""The request id of updates, and of replies to requests without one."""
SMALL = 4 * 1024
"""Bytes of a message before authentication, and of a request besides its data."""
_LARGEST_ID = 1 << 63


class Request(Struct):
    """One request; `target` is empty if absent."""

    action: str
    target: str = ""
    request_id: int | float = NO_REQUEST
    data: dict[str, Any] = {}
    excess: int = 0
    """The bytes of a request that is too large, whose `data` was not read; 0 for any other."""


class Meta(Struct):
    """The header of every message that the service sends."""

    request_id: int | float
    action: str
    target: str
    timestamp: int
    """Unix ms."""


class ErrorEntry(Struct):
    """One entry of `errors`. Published clients read the status from `number`."""

    status: int
    number: int
    title: str
    detail: str


class Reply(Struct, omit_defaults=True):
    """A reply or an update: `data` on success, `errors` on failure, never both."""

    meta: Meta
    data: object = None
    errors: list[ErrorEntry] | None = None


class _Outline(Struct):
    """The members of a large request that the reply repeats, undecoded."""

    action: msgspec.Raw = msgspec.Raw(b'""')
    params: msgspec.Raw = msgspec.Raw(b"{}")


def read_request(text: bytes, request: Request, *, max_data: int) -> None:
    """Parse a message into an empty request. Raises `BadRequest` naming the invalid member; those before it are read.

    If the data is over `max_data` bytes, only the other members are decoded, which takes a tenth of the time.
    """
    is_large = len(text) > max_data + SMALL
    try:
        envelope = _decode_outline(text) if is_large else msgspec.json.decode(text)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as error:
        raise refusals.malformed_message(problem=json_codec.decode_problem(error, text)) from None
    if not isinstance(envelope, dict):
        raise refusals.no_object()
    if is_large:
        request.excess = len(text)
    # The members that the reply repeats come first, so that the client can match an error to its request.
    params = _object_member(envelope, "params")
    request.request_id = _request_id(params)
    request.action = _text_member(envelope, "action", "action")
    request.target = _text_member(params, "target", "params.target")
    request.data = _object_member(envelope, "data")
    if not request.target and request.action in ("subscribe", "unsubscribe"):
        older = request.data.get("target")  # where older clients put it
        request.target = older if isinstance(older, str) else ""
    if not request.action:
        raise refusals.missing_action()


def _decode_outline(text: bytes) -> dict[str, Any]:
    try:
        outline = msgspec.json.decode(text, type=_Outline)
    except msgspec.ValidationError:  # its members may have any type
        raise refusals.no_object() from None
    members = {"action": bytes(outline.action), "params": bytes(outline.params)}
    for name, member in members.items():
        if len(member) > SMALL:
            raise refusals.member_too_large(member=name, size=len(member), limit=SMALL)
    return {name: msgspec.json.decode(member) for name, member in members.items()}


def encode_reply(request: Request, data: object, *, now: int) -> bytes:
    return json_codec.encode(Reply(_reply_meta(request, now), data=data))


def encode_error(request: Request, error: ServiceError, *, now: int) -> bytes:
    entry = ErrorEntry(error.status, error.status, error.title, error.detail)
    return json_codec.encode(Reply(_reply_meta(request, now), errors=[entry]))


def encode_update(target: str, data: object, *, now: int) -> bytes:
    """The update that all subscribers receive."""
    return json_codec.encode(Reply(Meta(NO_REQUEST, "update", target, now), data=data))


def _reply_meta(request: Request, now: int) -> Meta:
    return Meta(request.request_id, request.action, request.target, now)


def _object_member(envelope: dict[str, Any], name: str) -> dict[str, Any]:
    value = envelope.get(name)
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise refusals.wrong_member(member=name, needed="an object")
    return value


def _request_id(params: dict[str, Any]) -> int | float:
    """The id of a request; the reply repeats it unchanged."""
    value: Any = params.get("request_id", NO_REQUEST)
    if isinstance(value, int | float) and not isinstance(value, bool) and -_LARGEST_ID < value < _LARGEST_ID:
        return value
    raise refusals.wrong_member(member="params.request_id", needed="a number of at most 64 bits")


def _text_member(source: dict[str, Any], member: str, name: str) -> str:
    value = source.get(member, "")
    if not isinstance(value, str):
        raise refusals.wrong_member(member=name, needed="a string")
    return value
