"""Broadcasts over the socket: `broadcast`, and subscriptions to events (rulings X5, X8)."""

from __future__ import annotations

from typing import Any, Final

from msgspec import UNSET, Struct

from emulator.callers import CHANNEL_WRITERS
from emulator.engines.shapes import Key
from emulator.features.broadcast.rules import checked_event
from emulator.features.broadcast.service import Broadcasts
from emulator.realtime.action import Done, Message, action, feed
from emulator.wire.refusals import missing_member


class BroadcastBody(Struct):
    """A message to the connection's channel. `message` and `ids` are the older form."""

    topic: str
    data: Any = UNSET
    message: str = ""
    ids: list[str] | None = None
    """Users to whisper to instead of the whole channel, at most 1,000."""


class EventBody(Struct):
    """The event to follow; `*` means all."""

    topic_id: str = ""


@action("broadcast", roles=CHANNEL_WRITERS)
async def broadcast(broadcasts: Broadcasts, message: Message) -> Done:
    """Send an event to its subscribers in the channel."""
    body = message.body(BroadcastBody)
    checked_event(body.topic, "data.topic")
    data = body.message if body.data is UNSET else body.data
    if body.ids is None:
        await broadcasts.send(message.caller, message.channel, body.topic, data)
    else:
        await broadcasts.whisper(message.caller, message.channel, body.topic, data, user_ids=body.ids)
    return Done()


@feed("broadcast")
async def broadcast_topics(broadcasts: Broadcasts, message: Message) -> tuple[Key, ...]:
    """Follow the event that `topic_id` names; `*` covers all events of the channel."""
    event = message.body(EventBody).topic_id
    if not event:
        raise missing_member("data.topic_id", "name an event, or '*' for all")
    return broadcasts.topics(message.caller, message.channel, checked_event(event, "data.topic_id"))


@feed()
async def event_topics(broadcasts: Broadcasts, message: Message) -> tuple[Key, ...]:
    """Follow the event that the target names."""
    return broadcasts.topics(message.caller, message.channel, checked_event(message.target, "params.target"))


actions: Final = (broadcast,)
feeds: Final = (broadcast_topics,)
