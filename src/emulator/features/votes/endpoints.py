"""Polls over the WebSocket: `create`, `get`, `reconfigure`, `delete` and `subscribe` (rulings X5, X6)."""

from __future__ import annotations

from typing import Any, Final

from msgspec import UNSET, Struct, UnsetType

from emulator.core.callers import CHANNEL_WRITERS, is_global, required_channel
from emulator.core.keys import Key
from emulator.core.wire import json_codec
from emulator.core.wire.refusals import missing_member
from emulator.features.votes.results import PollResults
from emulator.features.votes.rules import PollConfig, checked_poll_id
from emulator.features.votes.service import Polls
from emulator.realtime.action import Done, Message, action, feed

_POLL_ID: Final = "data.poll_id"


class CreateBody(Struct):
    """A poll to create; `config` holds the other members of its definition. A member next to it replaces its own."""

    poll_id: str
    prompt: str | UnsetType = UNSET
    options: list[str] | UnsetType = UNSET
    user_data: Any | UnsetType = UNSET
    config: dict[str, Any] | None = None


class PollBody(Struct):
    """The poll to read or delete."""

    poll_id: str


class ReconfigureBody(Struct):
    """The members of a poll's definition to change."""

    poll_id: str
    config: dict[str, Any]


class PollTopicBody(Struct):
    """The poll to subscribe to; `*` for all polls of the channel."""

    topic_id: str = ""
    poll_id: str = ""


@action("create", "poll", roles=CHANNEL_WRITERS)
async def create_poll(polls: Polls, message: Message) -> Done:
    """Create a poll, or replace the definition of an existing one and keep its votes."""
    body = message.body(CreateBody)
    beside = {"prompt": body.prompt, "options": body.options, "userData": body.user_data}
    members = (body.config or {}) | {name: value for name, value in beside.items() if value is not UNSET}
    config = json_codec.convert(members, PollConfig, inside="data.config")
    poll_id = checked_poll_id(body.poll_id, _POLL_ID)
    await polls.create(message.caller, _channel(message, poll_id), poll_id, config)
    return Done()


@action("get", "poll")
async def read_results(polls: Polls, message: Message) -> PollResults:
    """Read a poll and its results; 404 if it has neither a definition nor votes."""
    poll_id = checked_poll_id(message.body(PollBody).poll_id, _POLL_ID)
    return await polls.results(message.caller, _channel(message, poll_id), poll_id)


@action("reconfigure", "poll", roles=CHANNEL_WRITERS)
async def reconfigure_poll(polls: Polls, message: Message) -> Done:
    """Change a poll's definition; `endsAt: -1` ends the poll."""
    body = message.body(ReconfigureBody)
    poll_id = checked_poll_id(body.poll_id, _POLL_ID)
    await polls.reconfigure(message.caller, _channel(message, poll_id), poll_id, body.config)
    return Done()


@action("delete", "poll", roles=CHANNEL_WRITERS)
async def delete_poll(polls: Polls, message: Message) -> Done:
    """Delete a poll with its votes, log and definition. Deleting an absent poll is not an error."""
    poll_id = checked_poll_id(message.body(PollBody).poll_id, _POLL_ID)
    await polls.clear(message.caller, message.channel, poll_id)
    return Done()


@feed("poll")
async def poll_topic(polls: Polls, message: Message) -> tuple[Key, ...]:
    """The topic of a poll, which need not exist yet; `*` covers all polls of the channel."""
    body = message.body(PollTopicBody)
    poll_id = body.topic_id or body.poll_id
    if not poll_id:
        raise missing_member("data.topic_id", "name a poll, or '*' for all polls of the channel")
    member = "data.topic_id" if body.topic_id else _POLL_ID
    return (await polls.topic(message.caller, _channel(message, poll_id), poll_id, member=member),)


def _channel(message: Message, poll_id: str) -> str:
    """Return the connection's channel; raises `BadRequest` if there is none and the poll is not global."""
    return message.channel or "" if is_global(poll_id) else required_channel(message.channel, "a poll")


actions: Final = (create_poll, read_results, reconfigure_poll, delete_poll)
feeds: Final = (poll_topic,)
