"""Broadcasts over REST: GET with a body, GET with a query, and POST (rulings B1, W6); and over the socket: `broadcast`,
and subscriptions to events (rulings X5, X8)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Annotated, Any

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from emulator.contract.limits import MAX_ID_LENGTH
from emulator.core.callers import ANYONE, CHANNEL_WRITERS, EXTENSION_WRITERS, Caller, Role, required_channel, role_error
from emulator.core.keys import Key
from emulator.core.observability.facts import DEFAULT_EVENT, notice
from emulator.core.wire import json_codec
from emulator.core.wire.refusals import checked_text, invalid_parameter, missing_member
from emulator.features.broadcast.service import BROADCAST, WHISPER_PREFIX, Broadcasts, checked_event, whisper_targets
from emulator.http.endpoint import Call, Endpoint, Nothing, Parameter, endpoint
from emulator.realtime.action import Done, Message, action, feed

_QUERY = (
    Parameter("event", "The event of a GET without a body."),
    Parameter("data", "The message of a GET without a body, as JSON."),
    Parameter("target", "The target of a GET without a body: `broadcast` or `whisper-<user id>`."),
    Parameter("user_id", "The id of the channel, for a GET without a body. `channel_id` is another name for it."),
)


_DEFAULT_EVENT = "default"
_A_BROADCAST = "a broadcast"


class MessageBody(Struct):
    """An event with its message."""

    data: Any = UNSET
    event: Annotated[str | UnsetType, Meta(extra_json_schema={"default": _DEFAULT_EVENT})] = UNSET
    target: str = BROADCAST
    """`broadcast` or `whisper-<user id>`."""
    user_id: str | int = ""
    """The id of the channel's owner."""
    channel_id: str | int = ""
    """The same as `user_id`."""


Send = Callable[[Broadcasts, Call, MessageBody, str], Awaitable[None]]


async def broadcast(broadcasts: Broadcasts, call: Call, body: MessageBody, event: str) -> None:
    """Send an event to a channel, or to one user there."""
    channel, data = _channel(call.caller, call.channel, body), _required_data(body)
    await broadcasts.send(call.caller, required_channel(channel, _A_BROADCAST), event, data, body.target)


async def extension_broadcast(broadcasts: Broadcasts, call: Call, body: MessageBody, event: str) -> None:
    """Send an event to the listeners in all channels of the extension."""
    await broadcasts.send(call.caller, "", event, _required_data(body), body.target)


async def whisper_self(broadcasts: Broadcasts, call: Call, body: MessageBody, event: str) -> None:
    """Send an event to the caller's own clients in the channel."""
    channel, data = call.channel, _required_data(body)
    target = f"{WHISPER_PREFIX}{call.caller.opaque_id}"
    await broadcasts.send(call.caller, required_channel(channel, _A_BROADCAST), event, data, target)


async def pusher_broadcast(broadcasts: Broadcasts, call: Call, body: MessageBody, event: str) -> None:
    """Send an event under its full name, as the development mode of the published SDK does.

    In the sandbox, every role may send it.
    """
    channel = _channel(call.caller, call.channel, body)
    await broadcasts.send_as_page(call.caller, channel, event, body.data, body.target)


def _endpoints_of(send: Send, roles: frozenset[Role], *methods: str) -> tuple[Endpoint, ...]:
    """Declare an endpoint for each method, named after the function."""

    def declare(method: str) -> Endpoint:
        async def handler(broadcasts: Broadcasts, call: Call) -> Nothing:
            body = _body_or_query(call)
            await send(broadcasts, call, body, _DEFAULT_EVENT if body.event is UNSET else body.event)
            if body.event is UNSET:
                notice(DEFAULT_EVENT, Key("event", call.caller.client_id, _DEFAULT_EVENT))
            return Nothing()

        name = send.__name__
        handler.__doc__ = send.__doc__
        handler.__name__ = name if method == methods[0] else f"{method.lower()}_{name}"
        query = _QUERY if method == "GET" else ()
        return endpoint(method, f"/v1/e/{name}", roles=roles, body=MessageBody, query=query)(handler)

    return tuple(declare(method) for method in methods)


def _body_or_query(call: Call) -> MessageBody:
    """Return the body, or the query of a GET without a body."""
    if call.raw.strip():
        return call.body(MessageBody)
    query = {name: call.text(name) for name in ("event", "target", "user_id", "channel_id")}
    fields: dict[str, Any] = {name: value for name, value in query.items() if value}
    if call.text("data"):
        try:
            fields["data"] = msgspec.json.decode(call.text("data"))
        except (msgspec.MsgspecError, RecursionError):
            raise invalid_parameter("data", call.text("data"), "valid JSON") from None
    return json_codec.convert(fields, MessageBody, inside="query")


def _required_data(body: MessageBody) -> Any:
    if body.data is UNSET:
        raise missing_member("data")
    return body.data


def _channel(caller: Caller, channel: str | None, body: MessageBody) -> str | None:
    """Return the channel in the body, or by default the caller's.

    Raises `Forbidden` if the caller may not choose a channel.
    """
    channel_id = str(body.user_id or body.channel_id)
    if not channel_id or channel_id == channel:
        return channel
    if not caller.spans_channels:
        raise role_error(caller, EXTENSION_WRITERS, "broadcast to another channel")
    return checked_text(channel_id, MAX_ID_LENGTH, reason="Invalid body", name="user_id")


endpoints = (
    *_endpoints_of(broadcast, CHANNEL_WRITERS, "GET", "POST"),
    *_endpoints_of(extension_broadcast, EXTENSION_WRITERS, "GET", "POST"),
    *_endpoints_of(whisper_self, ANYONE, "GET", "POST"),
    *_endpoints_of(pusher_broadcast, ANYONE, "POST"),
)


class BroadcastBody(Struct):
    """A message to the connection's channel. `message` and `ids` are the older form."""

    topic: str
    data: Any = UNSET
    message: str = ""
    ids: list[str] | None = None
    """Users to whisper to instead of the whole channel, at most 1,000."""


class EventBody(Struct):
    """The event to follow; `*` means all events."""

    topic_id: str = ""


@action("broadcast", roles=CHANNEL_WRITERS)
async def send_broadcast(broadcasts: Broadcasts, message: Message) -> Done:
    """Send an event to its subscribers in the channel."""
    body = message.body(BroadcastBody)
    checked_event(body.topic, "data.topic")
    data = body.message if body.data is UNSET else body.data
    targets = [BROADCAST] if body.ids is None else whisper_targets(body.ids)
    channel = required_channel(message.channel, _A_BROADCAST)
    await broadcasts.send(message.caller, channel, body.topic, data, *targets)
    return Done()


@feed("broadcast")
async def broadcast_topics(broadcasts: Broadcasts, message: Message) -> tuple[Key, ...]:
    """Follow the event that `topic_id` names; `*` means all events of the channel."""
    event = message.body(EventBody).topic_id
    if not event:
        raise missing_member("data.topic_id", "name an event, or '*' for all events")
    return broadcasts.topics(message.caller, message.channel, checked_event(event, "data.topic_id"))


@feed()
async def event_topics(broadcasts: Broadcasts, message: Message) -> tuple[Key, ...]:
    """Follow the event that the target names."""
    return broadcasts.topics(message.caller, message.channel, checked_event(message.target, "params.target"))


actions = (send_broadcast,)
feeds = (broadcast_topics,)
