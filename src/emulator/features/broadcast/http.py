"""Broadcasts over REST: GET with a body, GET with a query, and POST (rulings B1, W6)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Final

import msgspec
from msgspec import UNSET, Struct

from emulator.callers import ANYONE, CHANNEL_WRITERS, EXTENSION_WRITERS, Caller, Role
from emulator.errors import BadRequest, Forbidden
from emulator.features.broadcast.service import EVERYBODY, Broadcasts
from emulator.web.call import Call
from emulator.web.endpoint import Endpoint, Nothing, Parameter, endpoint
from emulator.wire import json_codec

_QUERY: Final = (
    Parameter("event", "In a GET without a body: the developer's name of the message."),
    Parameter("data", "In a GET without a body: the message, as JSON text."),
    Parameter("target", "In a GET without a body: `broadcast` or `whisper-<user id>`."),
    Parameter("user_id", "In a GET without a body: the channel; also `channel_id`."),
)


class MessageBody(Struct):
    """A message under an event's name."""

    data: Any = UNSET
    event: str = "default"
    target: str = EVERYBODY
    """Everybody, or `whisper-<user id>`."""
    user_id: str | int = ""
    """The channel, by its owner's id."""
    channel_id: str | int = ""
    """Another name of the same."""


async def _to_channel(broadcasts: Broadcasts, call: Call, body: MessageBody) -> None:
    channel = _channel(call.caller, call.channel, body)
    await broadcasts.send(call.caller, channel, body.event, _given(body), target=body.target)


async def _to_extension(broadcasts: Broadcasts, call: Call, body: MessageBody) -> None:
    await broadcasts.send_everywhere(call.caller, body.event, _given(body), target=body.target)


async def _to_self(broadcasts: Broadcasts, call: Call, body: MessageBody) -> None:
    await broadcasts.whisper_self(call.caller, call.channel, body.event, _given(body))


async def _as_page(broadcasts: Broadcasts, call: Call, body: MessageBody) -> None:
    channel = _channel(call.caller, call.channel, body)
    await broadcasts.send_as_page(call.caller, channel, body.event, body.data, target=body.target)


def _endpoints_of(
    name: str,
    roles: frozenset[Role],
    send: Callable[[Broadcasts, Call, MessageBody], Awaitable[None]],
    doc: str,
    *,
    methods: tuple[str, ...] = ("GET", "POST"),
) -> tuple[Endpoint[Broadcasts], ...]:
    """One call under each of its methods."""

    def declared(method: str) -> Endpoint[Broadcasts]:
        async def handler(broadcasts: Broadcasts, call: Call) -> Nothing:
            await send(broadcasts, call, _body(call))
            return Nothing()

        handler.__doc__ = doc
        handler.__name__ = name if method == methods[0] else f"{method.lower()}_{name}"
        query = _QUERY if method == "GET" else ()
        return endpoint(method, f"/v1/e/{name}", roles=roles, body=MessageBody, query=query)(handler)

    return tuple(declared(method) for method in methods)


def _body(call: Call) -> MessageBody:
    """The body; of a GET without one, what the query says."""
    if call.raw.strip():
        return call.body(MessageBody)
    said: dict[str, Any] = {name: call.text(name) for name in ("event", "target", "user_id", "channel_id")}
    said = {name: value for name, value in said.items() if value}
    if call.text("data"):
        try:
            said["data"] = msgspec.json.decode(call.text("data"))
        except (msgspec.MsgspecError, RecursionError):
            raise BadRequest("Malformed data parameter", "data: is not readable as JSON") from None
    return json_codec.convert(said, MessageBody, inside="query")


def _given(body: MessageBody) -> Any:
    if body.data is UNSET:
        raise BadRequest("Invalid body", "data: is missing")
    return body.data


def _channel(caller: Caller, channel: str | None, body: MessageBody) -> str | None:
    """The channel that the body names, which only those may do whose token does not bind them to one."""
    named = str(body.user_id or body.channel_id)
    if not named or named == channel:
        return channel
    if not caller.spans_channels:
        raise Forbidden("role is not authorized", f"the role {caller.role} may not broadcast to another channel")
    if len(named) > 64 or not named.isprintable():
        raise BadRequest("Invalid body", "user_id: at most 64 printable characters")
    return named


endpoints: Final = (
    *_endpoints_of("broadcast", CHANNEL_WRITERS, _to_channel, "Send a message to a channel, or to one user there."),
    *_endpoints_of(
        "extension_broadcast", EXTENSION_WRITERS, _to_extension, "Send a message to all channels of the extension."
    ),
    *_endpoints_of("whisper_self", ANYONE, _to_self, "Send a message to the caller's own clients in the channel."),
    *_endpoints_of(
        "pusher_broadcast",
        ANYONE,
        _as_page,
        "Pass on a message of a page, whose event has its full name.\n\nAny role in sandbox.",
        methods=("POST",),
    ),
)
