"""Polls over REST: `vote`, `vote_logs`, `vote_config` and `polls`; and over the WebSocket: `create`, `get`,
`reconfigure`, `delete` and `subscribe` (rulings X5, X6).
"""

from __future__ import annotations

from typing import Any, Final

from msgspec import UNSET, Struct, UnsetType

from emulator.core.callers import ANYONE, CHANNEL_WRITERS, EXTENSION_WRITERS, is_global, required_channel
from emulator.core.keys import Key
from emulator.core.wire import json_codec
from emulator.core.wire.json_codec import stream_array
from emulator.core.wire.refusals import invalid_parameter, missing_member
from emulator.features.votes.definitions import Definition, PollConfig, Vote
from emulator.features.votes.results import PollList, PollResults
from emulator.features.votes.rules import Poll, checked_poll_id
from emulator.features.votes.service import Polls
from emulator.http.endpoint import CHANNEL, PAGE, Call, Nothing, Parameter, Streamed, endpoint, id_of
from emulator.realtime.action import Done, Message, action, feed

_POLL = id_of("poll")
_SINCE = Parameter("since", "Only votes received at or after this Unix time in ms.", "integer")
_LIMIT = Parameter("limit", "At most this many entries.", "integer")


class VoteBody(Struct):
    """A vote: `value` is -99 to 99; `count`, 1 to 30, applies to polls with additive votes."""

    value: int
    count: int = 1


class VoteLog(Struct):
    """Every voter's latest vote, oldest first."""

    result: list[Vote]


class PollConfigBody(Struct):
    """A definition and the id of its poll; without `id`, the query parameter `id` counts."""

    config: PollConfig
    id: str = ""
    expected: dict[str, Any] | None = None
    """The definition as the caller has read it, `{}` for none: 409 if the poll has changed since."""


@endpoint("GET", "/v1/e/vote", roles=ANYONE, answer=Poll, query=(_POLL, CHANNEL))
async def read_poll(polls: Polls, call: Call) -> Poll:
    """Read a poll's statistics and the caller's own vote.

    An absent poll reads as zeros. `specific[i]` counts the votes for value i, 0 to 63.
    """
    return await polls.read(call.caller, call.channel, call.id)


@endpoint("POST", "/v1/e/vote", roles=ANYONE, body=VoteBody, answer=Poll, query=(_POLL, CHANNEL))
async def cast_vote(polls: Polls, call: Call) -> Poll:
    """Vote, or replace an earlier vote.

    In a poll with `totalVotesPerUser` over 1, votes add up: each call adds `count` votes. Other polls ignore `count`.
    """
    body = call.body(VoteBody)
    return await polls.cast(call.caller, call.channel, call.id, body.value, body.count)


@endpoint("DELETE", "/v1/e/vote", roles=CHANNEL_WRITERS, query=(_POLL, CHANNEL))
async def clear_poll(polls: Polls, call: Call) -> Nothing:
    """Delete a poll with its votes, log and definition.

    Deleting an absent poll is not an error.
    """
    await polls.clear(call.caller, call.channel, call.id)
    return Nothing()


@endpoint("GET", "/v1/e/vote_logs", roles=EXTENSION_WRITERS, answer=VoteLog, query=(_POLL, CHANNEL, _SINCE, _LIMIT))
async def read_vote_log(polls: Polls, call: Call) -> Streamed:
    """Read every voter's latest vote, oldest first. The response is streamed."""
    since, limit = call.integer("since", 0), call.integer("limit", -1)
    if call.text("limit") and limit < 0:
        raise invalid_parameter("limit", limit, "0 or more")
    pages = await polls.log(call.caller, call.channel, call.id, since=since, limit=None if limit < 0 else limit)
    return Streamed(stream_array(b'{"result":[', pages, b"]}"))


@endpoint("POST", "/v1/e/vote_config", roles=CHANNEL_WRITERS, body=PollConfigBody, query=(_POLL, CHANNEL))
async def define_poll(polls: Polls, call: Call) -> Nothing:
    """Create a poll, or replace the definition of an existing one and keep its votes."""
    body = call.body(PollConfigBody)
    await polls.define(call.caller, call.channel, body.id or call.id, body.config, body.expected)
    return Nothing()


@endpoint("GET", "/v1/e/vote_config", roles=ANYONE, answer=Definition, query=(_POLL, CHANNEL))
async def read_poll_definition(polls: Polls, call: Call) -> Definition:
    """Read a poll's definition and its status: pending, active or expired."""
    return await polls.definition(call.caller, call.channel, call.id)


@endpoint("GET", "/v1/e/polls", roles=CHANNEL_WRITERS, answer=PollList, query=PAGE)
async def list_polls(polls: Polls, call: Call) -> PollList:
    """List the polls of a channel, or of all channels with an extension-level token.

    The order is channel, then id.
    """
    return await polls.listing(call.caller, call.channel, call.page)


endpoints: Final = (read_poll, cast_vote, clear_poll, read_vote_log, define_poll, read_poll_definition, list_polls)


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
