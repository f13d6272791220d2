"""A request as the service reads it: its headers and its body, which may be a plain HTML form at the control API."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass
from datetime import UTC, datetime
from typing import Any

import msgspec
from litestar.types import HTTPScope, Receive

from emulator.core.observability.request_context import RequestContext, scope_context
from emulator.core.wire import json_codec
from emulator.core.wire.refusals import invalid_member
from emulator.core.wire.url import parse_query
from emulator.http.refusals import ambiguous_form, body_cut_off, body_too_large

_ARRIVAL_WAIT = 0.2
"""Seconds that a refusal may be late in the sandbox, so that the journal has the body."""
_FORM_TYPE = b"application/x-www-form-urlencoded"
_JSON_STARTS = (b"{", b"[", b'"')


@dataclass(slots=True, eq=False, repr=False)
class Request:
    """One request. Its body has arrived completely, or is read when it is needed."""

    context: RequestContext
    headers: Mapping[bytes, bytes]
    """By lower-case name; the last of duplicate headers."""
    query: bytes
    peer: str
    """The client's IP address; empty if unknown."""
    raw: bytes = b""
    """The whole body, once it is read; empty if the endpoint streams it."""
    size: int = 0
    """Bytes of the body: as declared, or as read."""
    _: KW_ONLY
    parts: Mapping[str, str] | None = None
    """The parts of the path that its endpoint declares in braces, by name; `None` or empty without any."""
    receive: Receive | None = None
    """Receives the body from an ASGI server; `None` if it has arrived."""
    is_unread: bool = False
    """Whether nothing of the body has been received."""
    scope: HTTPScope | None = None
    """The ASGI scope, for the gates of the control API and of pages; `None` if no ASGI server is involved."""

    async def body(self, limit: int) -> bytes:
        """Return the whole body; raises `TooLarge` as soon as it is known to exceed `limit` bytes (ruling W8)."""
        if self.receive is None:
            if len(self.raw) > limit:
                raise body_too_large(size=len(self.raw), limit=limit)
            return self.raw
        self.raw = b"".join([chunk async for chunk in self.chunks(limit)])
        return self.raw

    async def chunks(self, limit: int) -> AsyncIterator[bytes]:
        """Yield the body in chunks; raises `TooLarge` beyond `limit` bytes, and `BadRequest` if the client leaves."""
        if self.receive is None:
            yield await self.body(limit)
            return
        length = self.headers.get(b"content-length", b"0")
        if length.isdigit() and int(length) > limit:
            raise body_too_large(size=int(length), limit=limit)
        size, has_more = 0, True
        while has_more:
            self.is_unread = False
            message: Any = await self.receive()
            if message["type"] == "http.disconnect":
                raise self.context.early_error or body_cut_off(size=size)
            chunk = message.get("body", b"")
            size += len(chunk)
            self.size = max(self.size, size)
            if size > limit:
                raise body_too_large(limit=limit)
            yield chunk
            has_more = message.get("more_body", False)

    async def read_arriving_body(self) -> None:
        """Set `raw` to the part of an unread body that arrives soon.

        Clients often send the body in a separate packet.
        """
        if self.receive is None or not self.is_unread or not self.size or b"expect" in self.headers:
            return
        with suppress(TimeoutError):
            message: Any = await asyncio.wait_for(self.receive(), _ARRIVAL_WAIT)
            self.raw = message.get("body", b"")


def request_from_scope(scope: HTTPScope, receive: Receive, parts: Mapping[str, str]) -> Request:
    """Return the request of an ASGI server, with the parts of its path that the endpoint declares in braces."""
    context, client = scope_context(scope), scope.get("client")
    headers = context.headers or dict(scope["headers"])
    length = headers.get(b"content-length", b"")
    return Request(
        context,
        headers,
        scope["query_string"],
        client[0] if client else "",
        size=int(length) if length.isdigit() else 0,
        parts=parts,
        receive=receive,
        is_unread=True,
        scope=scope,
    )


def form_to_json(body: bytes, headers: Mapping[bytes, bytes], shape: Any) -> bytes:
    """Return the body: a form converted to JSON of this type, any other body unchanged.

    Fields without a value are left out.
    The field `body.event` is the member `event` of the object `body`, at any depth. A name that ends with `:json` has
    JSON as its value, as `body.data:json`; one that ends with `:lines` has a list with its lines that are not empty.
    `:seconds` turns a date and time in UTC into Unix seconds. With `:list` after that, the value is the only entry of a
    list: `body.indices:json:list`. `body:json` may come after fields of the same object.
    The first of a repeated field counts. A body that starts as JSON is never a form: curl sends JSON with a form's
    content type by default, and browsers escape these characters. Raises `BadRequest` naming a field of a wrong type.
    """
    is_form = headers.get(b"content-type", b"").startswith(_FORM_TYPE) and b"=" in body
    if not is_form or body.lstrip().startswith(_JSON_STARTS):
        return body
    fields = _form_members({name: value for name, value in parse_query(body).items() if value})
    try:
        return json_codec.encode(msgspec.convert(fields, shape, strict=False))
    except msgspec.ValidationError as error:
        raise json_codec.shape_error(error) from None


def _form_members(fields: Mapping[str, str]) -> dict[str, Any]:
    """Return the members of the JSON object that the fields of a form describe. Raises `BadRequest`."""
    found: dict[str, Any] = {}
    for field, text in sorted(fields.items(), key=lambda pair: pair[0].count(".")):  # objects before their members
        name, *conversions = field.split(":")
        *outer, last = name.split(".")
        members, place = found, ""
        for part in outer:
            place = f"{place}.{part}" if place else part
            members = members.setdefault(part, {})
            if not isinstance(members, dict):
                raise ambiguous_form(field=place, other=name)
        if last in members:
            raise ambiguous_form(field=name)
        members[last] = _form_value(name, text, conversions)
    return found


def _form_value(name: str, text: str, conversions: Sequence[str]) -> Any:
    value: Any = text
    if "lines" in conversions:
        value = [line for line in text.splitlines() if line]
    elif "json" in conversions:
        try:
            value = msgspec.json.decode(text)
        except (msgspec.DecodeError, RecursionError):
            raise invalid_member(name, text, "JSON; a string has double quotes") from None
    elif "seconds" in conversions:
        try:
            value = int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp())
        except ValueError:
            raise invalid_member(name, text, "a date and time such as 2030-01-31T18:00:00") from None
    return [value] if "list" in conversions else value
