"""The poll service, shared by REST and WebSocket: votes, logs, definitions and results."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from msgspec import UNSET, Struct, UnsetType

from emulator.contract.limits import HIGHEST_VOTE, LOWEST_VOTE
from emulator.core.callers import (
    ANYONE,
    CHANNEL_WRITERS,
    EXTENSION_WRITERS,
    Caller,
    check_extension_wide,
    is_global,
    required_channel,
)
from emulator.core.changes import Change, Changes
from emulator.core.clock import Clock, clamp_instant
from emulator.core.keys import NEVER, Key
from emulator.core.observability.audit import audit
from emulator.core.observability.facts import ABSENT, NAMED, NEW, notice
from emulator.core.wire import json_codec
from emulator.core.wire.json_codec import stream_array
from emulator.core.wire.refusals import invalid_parameter, missing_member
from emulator.features.directory import Directory
from emulator.features.id_quota import IdQuota
from emulator.features.kinds import Measured
from emulator.features.stores.service import Stores
from emulator.features.votes import rules
from emulator.features.votes.results import Poll, PollList, PollReader, PollResults, PollUpdates, listed_poll
from emulator.features.votes.rules import LIFETIME, Definition, PollConfig, checked_poll_id
from emulator.http.endpoint import CHANNEL, PAGE, Call, Nothing, Parameter, endpoint, id_of
from emulator.realtime.action import Done, Message, action, feed
from emulator.realtime.hub import ANY_NAME
from emulator.storage.shapes import BallotEntry, Ballots, CastRequest, OldDefinition

_POLL = id_of("poll")
_POLL_ID = "data.poll_id"
_SINCE = Parameter("since", "Only votes received at or after this Unix time in ms.", "integer")
_LIMIT = Parameter("limit", "At most this many entries.", "integer")


class VoteBody(Struct):
    """A vote: `value` is -99 to 99. `count`, 1 to 30, applies to polls in which votes add up."""

    value: int
    count: int = 1


class VoteLog(Struct):
    """Every voter's latest vote, oldest first."""

    result: list[rules.Vote]


class PollConfigBody(Struct):
    """A definition and the id of its poll. Without `id`, the query parameter `id` names the poll."""

    config: PollConfig
    id: str = ""
    expected: dict[str, Any] | None = None
    """The definition as the caller has read it, `{}` for none: 409 if the poll has changed since."""
    restart: bool = False
    """Delete the votes in the same step."""


class CreateBody(Struct):
    """A poll to create. `config` holds further members of its definition; a member beside `config` overrides them."""

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


@dataclass(eq=False, repr=False)
class Polls:
    """Polls of all extensions. `channel` is the channel of the call; `None` is all channels together (ruling A4)."""

    _ballots: Ballots
    _clock: Clock
    _id_quota: IdQuota
    _channel_state: Stores
    _directory: Directory
    _updates: PollUpdates
    _changes: Changes

    def __post_init__(self) -> None:
        self._reader = PollReader(self._ballots, self._clock)

    @endpoint("GET", "/v1/e/vote", roles=ANYONE, answer=Poll, query=(_POLL, CHANNEL))
    async def read_poll(self, call: Call) -> Poll:
        """Read a poll's statistics and the caller's own vote.

        An absent poll reads as zeros. `specific[i]` counts the votes for value i, 0 to 63.
        """
        key = _poll_key(call.caller, call.channel, call.id)
        counts, choice = await self._ballots.tally(key, now=self._clock.now(), voter=call.caller.opaque_id)
        if not counts:
            notice(ABSENT, key)
        return Poll.from_counts(counts, choice)

    async def measure(self, caller: Caller, channel: str | None, id: str, user: str) -> Measured:
        """Return the number of votes for each value."""
        tally = await self._ballots.tally(_poll_key(caller, channel, id), now=self._clock.now())
        return Measured(dict(tally.counts))

    @endpoint("POST", "/v1/e/vote", roles=ANYONE, body=VoteBody, answer=Poll, query=(_POLL, CHANNEL))
    async def cast_vote(self, call: Call) -> Poll:
        """Vote, or replace an earlier vote.

        In a poll with `totalVotesPerUser` over 1, votes add up: each call adds `count` votes. Other polls ignore
        `count`.
        """
        body, caller, channel, poll_id = call.body(VoteBody), call.caller, call.channel, call.id
        key = _poll_key(caller, channel or "", poll_id)
        value, count = body.value, body.count
        if not LOWEST_VOTE <= value <= HIGHEST_VOTE:
            raise rules.value_out_of_bounds(value=value, lowest=LOWEST_VOTE, highest=HIGHEST_VOTE)
        now = self._clock.now()
        if count != 1 and not await self._has_additive_votes(key):
            count = 1
        if not 1 <= count <= rules.MAX_VOTES_PER_CALL:
            raise rules.count_out_of_range(count=count, highest=rules.MAX_VOTES_PER_CALL)
        shared_id = caller.user_id
        note = (shared_id or "").encode()
        request = CastRequest(caller.opaque_id, str(value), note, shared_id is not None, count)
        write = partial(self._ballots.cast, key, request, now=now, expires_at=now + LIFETIME, tally=True)
        cast = await self._id_quota.write(key, caller, LIFETIME, now, write)
        if cast.refused:
            raise rules.vote_error(cast.refused, poll_id, await self._reader.definition(key), now)
        await self._changes.committed(Change(key, "vote", caller.opaque_id, value, now, count))
        if channel is None and not is_global(poll_id):  # the caller reads all channels together (ruling A4)
            key = key._replace(channel=None)
            return Poll.from_counts(*await self._ballots.tally(key, now=self._clock.now(), voter=caller.opaque_id))
        poll = Poll.from_counts(*cast.tally)
        if poll.count == count and cast.previous is None and await self._reader.definition(key) is None:
            notice(NEW, key)
        return poll

    @endpoint("DELETE", "/v1/e/vote", roles=CHANNEL_WRITERS, query=(_POLL, CHANNEL))
    async def clear_poll(self, call: Call) -> Nothing:
        """Delete a poll with its votes, log and definition.

        Deleting an absent poll is not an error.
        """
        await self.clear(call.caller, call.channel, call.id)
        return Nothing()

    async def clear(self, caller: Caller, channel: str | None, poll_id: str) -> None:
        """Delete the poll with its votes, log and definition. Does nothing if there is none.

        Raises `Forbidden` if all channels share the poll and the caller is only a broadcaster, as other edits do.
        """
        key = _managed_key(caller, channel, poll_id)
        if key.channel is not None and await self._reader.results(key) is None:
            notice(ABSENT, key)
        if found := await self._ballots.drop(key, now=self._clock.now()):
            polls = len(found) if key.channel is None else ""
            audit("polls deleted", caller, channel=channel, poll=poll_id, polls=polls)
        await self._changes.committed(*(Change(dropped, "cleared", caller.opaque_id) for dropped in found))
        for dropped in found:
            await self._id_quota.release(dropped)
            if dropped.channel:
                await self._align_announcement(caller, dropped)

    @endpoint("GET", "/v1/e/vote_logs", roles=EXTENSION_WRITERS, answer=VoteLog, query=(_POLL, CHANNEL, _SINCE, _LIMIT))
    async def read_vote_log(self, call: Call) -> AsyncIterator[bytes]:
        """Read every voter's latest vote, oldest first. The response is streamed."""
        since, limit = call.integer("since", 0), call.integer("limit", -1)
        if call.text("limit") and limit < 0:
            raise invalid_parameter("limit", limit, "0 or more")
        key, now = _poll_key(call.caller, call.channel, call.id), self._clock.now()
        counted = key.channel is not None and await self._has_additive_votes(key)
        since, most = clamp_instant(since), None if limit < 0 else min(limit, NEVER)
        pages = self._ballots.entries(key, now=now, since=since, limit=most)
        return stream_array(b'{"result":[', self._log_pages(key.owner, pages, counted), b"]}")

    async def _log_pages(
        self, client_id: str, pages: AsyncIterator[Sequence[BallotEntry]], counted: bool
    ) -> AsyncIterator[list[bytes]]:
        async for page in pages:
            unshared = [entry.voter for entry in page if not entry.note]
            shared = await self._directory.shared_ids(client_id, unshared) if unshared else {}
            yield [rules.encode_log_entry(entry, shared, counted) for entry in page]

    async def voters(
        self, caller: Caller, channel: str | None, poll_id: str, value: int
    ) -> AsyncIterator[list[tuple[str, int]]]:
        """Yield pages of users who have a vote for `value`, each with the Unix ms of the latest one, oldest first.

        In a poll in which votes add up, a user may have votes for other values too (ruling P4).
        """
        key, choice = _poll_key(caller, channel, poll_id), str(value)
        found = False
        async for page in self._ballots.entries(key, now=self._clock.now()):
            found = True
            yield [(entry.voter, entry.cast_at) for entry in page if entry.choice == choice]
        if not found:
            notice(ABSENT, key)

    @endpoint("POST", "/v1/e/vote_config", roles=CHANNEL_WRITERS, body=PollConfigBody, query=(_POLL, CHANNEL))
    async def define_poll(self, call: Call) -> Nothing:
        """Create a poll, or replace the definition of an existing one. Its votes stay, unless `restart` is true."""
        caller, body = call.caller, call.body(PollConfigBody)
        key = _managed_key(caller, call.channel or "", body.id or call.id)
        definition = rules.checked_definition(key.name, body.config, now=self._clock.now())
        text: OldDefinition = UNSET
        is_written = False
        while not is_written:  # until no other edit comes in between
            if body.expected is not None:
                text, found = await self._reader.stored_definition(key)
                rules.check_unchanged(key.name, found, body.expected)
            is_written = await self._define(caller, key, definition, only_if=text, clear=body.restart)
        return Nothing()

    @action("create", "poll", roles=CHANNEL_WRITERS)
    async def create_poll(self, message: Message) -> Done:
        """Create a poll, or replace the definition of an existing one and keep its votes."""
        body = message.body(CreateBody)
        beside = {"prompt": body.prompt, "options": body.options, "userData": body.user_data}
        given = {name: value for name, value in beside.items() if value is not UNSET}
        members = (body.config or {}) | given
        config = json_codec.convert(members, PollConfig, inside="data.config")
        poll_id = checked_poll_id(body.poll_id, _POLL_ID)
        await self.create(message.caller, _poll_channel(message, poll_id), poll_id, config)
        return Done()

    async def create(self, caller: Caller, channel: str, poll_id: str, config: PollConfig) -> None:
        """Define the poll, and announce it in the channel state, where pages read its prompt (ruling X6)."""
        key = _managed_key(caller, channel, poll_id)
        now = self._clock.now()
        definition = rules.checked_definition(poll_id, config, now=now)

        async def announce_and_define() -> None:  # in this order, so that a poll over the limit is not announced
            if key.channel:
                announcement = rules.announcement(definition)
                await self._channel_state.edit_member(caller, key.channel, key.name, lambda found: announcement)
            await self._define(caller, key, definition)

        await self._id_quota.write(key, caller, LIFETIME, now, announce_and_define)
        if key.channel:
            await self._align_announcement(caller, key)

    @action("reconfigure", "poll", roles=CHANNEL_WRITERS)
    async def reconfigure_poll(self, message: Message) -> Done:
        """Change a poll's definition; `endsAt: -1` ends the poll."""
        caller, body = message.caller, message.body(ReconfigureBody)
        poll_id = checked_poll_id(body.poll_id, _POLL_ID)
        key = _managed_key(caller, _poll_channel(message, poll_id), poll_id)
        while True:  # until no other edit comes in between
            text, before = await self._reader.stored_definition(key)
            if before is None:
                raise rules.no_definition(poll=poll_id)
            definition = before.reconfigured(body.config, now=self._clock.now())
            if await self._define(caller, key, definition, only_if=text):
                break
        if definition.ends_at != before.ends_at and definition.status_at(self._clock.now()) == "expired":
            self._updates.request_updates(key)
        return Done()

    @endpoint("GET", "/v1/e/vote_config", roles=ANYONE, answer=Definition, query=(_POLL, CHANNEL))
    async def read_poll_definition(self, call: Call) -> Definition:
        """Read a poll's definition and its status: pending, active or expired."""
        key = _poll_key(call.caller, call.channel or "", call.id)
        definition = await self._reader.definition(key)
        if definition is None:
            notice(ABSENT, key)
            raise rules.no_definition(poll=key.name)
        definition.status = definition.status_at(self._clock.now())
        return definition

    @endpoint("GET", "/v1/e/polls", roles=CHANNEL_WRITERS, answer=PollList, query=PAGE)
    async def list_polls(self, call: Call) -> PollList:
        """List the polls of a channel, or of all channels with an extension-level token.

        The order is channel, then id.
        """
        group, now = Key("poll", call.caller.client_id, "", call.channel), self._clock.now()
        found, next = await call.page.read(self._ballots.listing, group, now=now)
        return PollList([listed_poll(each, now=now) for each in found], next)

    @action("get", "poll")
    async def read_results(self, message: Message) -> PollResults:
        """Read a poll and its results; 404 if it has neither a definition nor votes."""
        poll_id = checked_poll_id(message.body(PollBody).poll_id, _POLL_ID)
        key = _poll_key(message.caller, _poll_channel(message, poll_id), poll_id)
        results = await self._reader.results(key)
        if results is None:
            notice(ABSENT, key)
            raise rules.no_poll(poll=poll_id)
        return results

    @action("delete", "poll", roles=CHANNEL_WRITERS)
    async def delete_poll(self, message: Message) -> Done:
        """Delete a poll with its votes, log and definition. Deleting an absent poll is not an error."""
        poll_id = checked_poll_id(message.body(PollBody).poll_id, _POLL_ID)
        await self.clear(message.caller, message.channel, poll_id)
        return Done()

    @feed("poll")
    async def poll_topic(self, message: Message) -> tuple[Key, ...]:
        """Follow a poll, which need not exist yet; `*` means all polls of the channel."""
        body = message.body(PollTopicBody)
        poll_id = body.topic_id or body.poll_id
        if not poll_id:
            raise missing_member("data.topic_id", "name a poll, or '*' for all polls of the channel")
        channel = _poll_channel(message, poll_id)
        if poll_id == ANY_NAME:
            return (Key("poll", message.caller.client_id, ANY_NAME, channel),)
        poll_id = checked_poll_id(poll_id, "data.topic_id" if body.topic_id else _POLL_ID)
        key = _poll_key(message.caller, channel, poll_id)
        await self._updates.schedule_updates(key)
        return (key,)

    async def _define(
        self, caller: Caller, key: Key, definition: Definition, *, only_if: OldDefinition = UNSET, clear: bool = False
    ) -> bool:
        """Write a definition, and with `clear` delete the votes.

        With `only_if`, write only if that is the current definition. Return whether it was written.
        """
        now = self._clock.now()
        text, terms, until = json_codec.encode(definition), definition.terms, now + LIFETIME
        write = partial(self._ballots.define, key, text, terms, now=now, expires_at=until, only_if=only_if, clear=clear)
        if not await self._id_quota.write(key, caller, LIFETIME, now, write):  # it has been changed meanwhile
            return False
        if definition.disabled:
            audit("polls disabled", caller, channel=key.channel, poll=key.name)
        notice(NAMED, key)
        if clear:
            audit("polls restarted", caller, channel=key.channel, poll=key.name)
            await self._changes.committed(Change(key, "cleared", caller.opaque_id))
        await self._changes.committed(Change(key, "defined", at=now, content=definition))
        return True

    async def _align_announcement(self, caller: Caller, key: Key) -> None:
        """Announce a poll that exists, and no other, after a write of it and of its announcement.

        They are two writes, and another caller may have deleted or created the poll in between. Each caller looks again
        after its own writes, so the last one leaves both in agreement.
        """
        is_agreed = False
        while not is_agreed:
            definition = await self._reader.definition(key)
            edit = partial(rules.aligned_member, definition)
            await self._channel_state.edit_member(caller, key.channel or "", key.name, edit)
            is_agreed = (await self._reader.definition(key) is None) is (definition is None)

    async def _has_additive_votes(self, key: Key) -> bool:
        definition = await self._reader.definition(key)
        return definition is not None and definition.total_votes_per_user > 1


def _poll_key(caller: Caller, channel: str | None, poll_id: str) -> Key:
    """Return the key of a poll; a global poll belongs to no channel."""
    return Key("poll", caller.client_id, checked_poll_id(poll_id), "" if is_global(poll_id) else channel)


def _poll_channel(message: Message, poll_id: str) -> str:
    """Return the connection's channel; raises `BadRequest` if there is none and the poll is not global."""
    return message.channel or "" if is_global(poll_id) else required_channel(message.channel, "a poll")


def _managed_key(caller: Caller, channel: str | None, poll_id: str) -> Key:
    """Return the key of a poll that the caller wants to define or delete.

    Raises `Forbidden` if the caller may not.
    """
    key = _poll_key(caller, channel, poll_id)
    if is_global(poll_id):
        check_extension_wide(caller, poll_id)
    return key
