"""Polls over the socket: `create`, `get`, `reconfigure`, `delete` and the feed (rulings X5, X6)."""

from __future__ import annotations

from typing import Any, Final

from msgspec import UNSET, Struct, UnsetType

from emulator.callers import CHANNEL_WRITERS
from emulator.engines.base import Key
from emulator.errors import BadRequest
from emulator.features.votes.definitions import PollConfig
from emulator.features.votes.rules import is_global
from emulator.features.votes.service import Polls
from emulator.features.votes.standing import Standing
from emulator.realtime.action import Message, action, feed
from emulator.realtime.gateway import Done
from emulator.wire import json_codec


class CreateBody(Struct):
    """A poll to create; `config` has the members of a definition but for those beside it."""

    poll_id: str
    prompt: str = ""
    options: list[str] | UnsetType = UNSET
    user_data: Any = None
    config: dict[str, Any] | None = None


class PollBody(Struct):
    """Which poll."""

    poll_id: str


class ReconfigureBody(Struct):
    """What to change of a poll's definition."""

    poll_id: str
    config: dict[str, Any]


class PollTopicBody(Struct):
    """Which poll to follow, `*` for all of the channel."""

    topic_id: str = ""
    poll_id: str = ""


@action("create", "poll", roles=CHANNEL_WRITERS)
async def create_poll(polls: Polls, message: Message) -> Done:
    """Create a poll, or define an existing one anew; its votes stay."""
    body = message.body(CreateBody)
    members = {**(body.config or {}), "prompt": body.prompt, "userData": body.user_data}
    if body.options is not UNSET:
        members["options"] = body.options
    config = json_codec.convert(members, PollConfig, inside="data.config")
    await polls.create(message.caller, _channel(message, body.poll_id), body.poll_id, config)
    return Done()


@action("get", "poll")
async def read_standing(polls: Polls, message: Message) -> Standing:
    """Read a poll and its results; 404 for one that has neither definition nor votes."""
    poll_id = message.body(PollBody).poll_id
    return await polls.standing(message.caller, _channel(message, poll_id), poll_id)


@action("reconfigure", "poll", roles=CHANNEL_WRITERS)
async def reconfigure_poll(polls: Polls, message: Message) -> Done:
    """Change a poll's definition; `endsAt` -1 stops it."""
    body = message.body(ReconfigureBody)
    await polls.reconfigure(message.caller, _channel(message, body.poll_id), body.poll_id, body.config)
    return Done()


@action("delete", "poll", roles=CHANNEL_WRITERS)
async def clear_poll(polls: Polls, message: Message) -> Done:
    """End a poll: votes, log and definition are gone. An absent poll is fine."""
    await polls.clear(message.caller, message.channel, message.body(PollBody).poll_id)
    return Done()


@feed("poll")
async def poll_topic(polls: Polls, message: Message) -> tuple[Key, ...]:
    """A poll, which need not exist yet; `*` for all of the channel."""
    body = message.body(PollTopicBody)
    poll_id = body.topic_id or body.poll_id
    if not poll_id:
        raise BadRequest("Invalid body", "data.topic_id: names no poll; '*' is all of the channel")
    return (await polls.topic(message.caller, _channel(message, poll_id), poll_id),)


def _channel(message: Message, poll_id: str) -> str:
    """The channel of the connection, which a poll needs unless it is global."""
    channel = message.channel
    if not channel and not is_global(poll_id):
        raise BadRequest("Invalid channel", "a poll needs a channel: authenticate with a token that has a channel_id")
    return channel or ""


actions: Final = (create_poll, read_standing, reconfigure_poll, clear_poll)
feeds: Final = (poll_topic,)
