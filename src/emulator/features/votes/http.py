"""Polls over REST: `vote`, `vote_logs`, `vote_config` and `polls`."""

from __future__ import annotations

from typing import Any, Final

from msgspec import Struct

from emulator.callers import ANYONE, CHANNEL_WRITERS, EXTENSION_WRITERS
from emulator.features.votes.definitions import Definition, PollConfig
from emulator.features.votes.listing import PollList
from emulator.features.votes.rules import Poll
from emulator.features.votes.service import Polls
from emulator.features.votes.stored import Vote
from emulator.http.endpoint import CHANNEL, PAGE, Call, Nothing, Parameter, Streamed, endpoint, id_of
from emulator.wire.json_codec import stream_array
from emulator.wire.refusals import invalid_parameter

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
