"""Everything the service promises about polls, whoever asks and over whatever wire."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any, Final, Protocol

import msgspec
from msgspec import UNSET, Struct, UnsetType

from emulator.callers import Caller
from emulator.clock import Clock, clamp_instant
from emulator.engines.base import Ballots, CastRequest, Entry, Key
from emulator.errors import NotFound
from emulator.features.votes.definitions import (
    Definition,
    PollConfig,
    checked_definition,
    reconfigured,
    status_of,
    terms_of,
)
from emulator.features.votes.rules import (
    LIFETIME,
    Poll,
    checked_count,
    checked_poll_id,
    checked_value,
    is_global,
    poll_of,
    refusal,
)
from emulator.features.votes.standing import Standing, standing_of
from emulator.features.votes.updates import PollUpdates
from emulator.limits.id_quota import IdQuota
from emulator.realtime.hub import ANY_NAME
from emulator.realtime.publisher import Publisher
from emulator.scheduling.scheduler import Scheduler
from emulator.wire import json_codec

_ANNOUNCED: Final = frozenset({"prompt", "options", "user_data"})


class Vote(Struct):
    """One line of the vote log."""

    identifier: str
    opaque: str
    value: int
    timestamp: int
    count: int | UnsetType = UNSET
    """How many votes of this user hold this value; only in polls where votes add up."""


class _Voter(Struct):
    """How a line of the log begins: kept with the vote, so that a log of a million is joined, not built."""

    identifier: str
    opaque: str


class ChannelState(Protocol):
    """The channel's state store, where a poll created over the socket is announced (ruling X6)."""

    async def set_member(self, caller: Caller, channel: str, name: str, value: object) -> None: ...

    async def remove_member(self, caller: Caller, channel: str, name: str, members: frozenset[str]) -> None: ...


class Announcement(Struct):
    """What a page finds in the channel state under the poll's id."""

    prompt: str
    options: list[str]
    user_data: Any


class Polls:
    """Polls of all extensions. `channel` is where the caller acts, `None` for all channels together (ruling A4)."""

    def __init__(
        self,
        ballots: Ballots,
        clock: Clock,
        id_quota: IdQuota,
        publisher: Publisher,
        scheduler: Scheduler,
        channel_state: ChannelState,
    ) -> None:
        self._ballots = ballots
        self._clock = clock
        self._id_quota = id_quota
        self._channel_state = channel_state
        self.updates = PollUpdates(self._standing, self._definition, publisher, scheduler, clock)

    async def read(self, caller: Caller, channel: str | None, poll_id: str) -> Poll:
        """Statistics, and the caller's own vote if there is one. An absent poll reads as empty."""
        key = _key(caller, channel, poll_id)
        counts, choice = await self._ballots.tally(key, now=self._clock.now(), voter=caller.identity)
        return poll_of(counts, choice)

    async def cast(self, caller: Caller, channel: str | None, poll_id: str, value: int, count: int = 1) -> Poll:
        """Record or replace the caller's vote, extend the poll's life, and return the poll as it then stands.

        `count` matters only in a poll whose definition lets votes add up. Raises `BadRequest` for a value out of
        bounds and for a vote that the poll's definition refuses.
        """
        key = _key(caller, channel or "", poll_id)
        choice = str(checked_value(value))
        now = self._clock.now()
        if count != 1 and not await self._lets_votes_add_up(key, now):
            count = 1
        checked_count(count)
        await self._id_quota.take(key, LIFETIME)
        note = json_codec.encode(_Voter(caller.identity, caller.opaque_id))[:-1]
        mark = CastRequest(caller.identity, choice, note, known=caller.user_id is not None, times=count)
        cast = await self._ballots.cast(key, mark, now=now, expires_at=now + LIFETIME, tally=True)
        if cast.refused:
            raise refusal(cast.refused)
        self.updates.changed(key)
        if channel is None and not is_global(poll_id):  # whose reading covers all channels together (ruling A4)
            return await self.read(caller, channel, poll_id)
        return poll_of(*cast.tally)

    async def clear(self, caller: Caller, channel: str | None, poll_id: str) -> None:
        """End the poll: votes, log and definition are gone. An absent poll is fine."""
        key = _key(caller, channel, poll_id)
        await self._ballots.drop(key, now=self._clock.now())
        await self._id_quota.free(key)
        self.updates.cleared(key)
        if key.channel:
            await self._channel_state.remove_member(caller, key.channel, poll_id, _ANNOUNCED)

    async def log(
        self, caller: Caller, channel: str | None, poll_id: str, *, since: int, limit: int | None
    ) -> AsyncIterator[list[bytes]]:
        """The latest vote of every voter from `since` (ms) on, oldest first, in pages of JSON texts (ruling P3)."""
        key, now = _key(caller, channel, poll_id), self._clock.now()
        counted = key.channel is not None and await self._lets_votes_add_up(key, now)
        pages = self._ballots.entries(key, now=now, since=clamp_instant(since), limit=limit)
        return ([_line(entry, counted) for entry in page] async for page in pages)

    async def voters(
        self, caller: Caller, channel: str | None, poll_id: str, value: int
    ) -> AsyncIterator[list[tuple[str, int]]]:
        """Those whose latest vote is `value`, and when each cast it (ms), in pages; earliest first."""
        key, choice = _key(caller, channel, poll_id), str(value)
        async for page in self._ballots.entries(key, now=self._clock.now()):
            yield [(entry.voter, entry.cast_at) for entry in page if entry.choice == choice]

    async def define(self, caller: Caller, channel: str | None, poll_id: str, config: PollConfig) -> None:
        """Create the poll, or give an existing one another definition; its votes stay (ruling P4)."""
        key = _key(caller, channel or "", poll_id)
        await self._define(key, checked_definition(poll_id, config, now=self._clock.now()))

    async def create(self, caller: Caller, channel: str, poll_id: str, config: PollConfig) -> None:
        """`define` it, and announce it in the channel state, where pages look for its prompt (ruling X6)."""
        key = _key(caller, channel, poll_id)
        definition = checked_definition(poll_id, config, now=self._clock.now())
        await self._id_quota.take(key, LIFETIME)  # before there is an announcement of what may not be
        if key.channel:
            announcement = Announcement(definition.prompt, definition.options, definition.user_data)
            await self._channel_state.set_member(caller, key.channel, poll_id, msgspec.to_builtins(announcement))
        await self._define(key, definition)

    async def reconfigure(self, caller: Caller, channel: str, poll_id: str, config: dict[str, Any]) -> None:
        """Change members of the definition; `endsAt` -1 stops the poll. Raises `NotFound` when there is none."""
        key = _key(caller, channel, poll_id)
        before = await self._definition(key)
        if before is None:
            raise NotFound("Not Found", f"the poll {poll_id} has no definition")
        definition = reconfigured(before, config, now=self._clock.now())
        await self._define(key, definition)
        if definition.ends_at != before.ends_at and status_of(definition, now=self._clock.now()) == "expired":
            self.updates.changed(key)

    async def definition(self, caller: Caller, channel: str | None, poll_id: str) -> Definition:
        """The poll's definition and status; raises `NotFound` for a poll that has none."""
        definition = await self._definition(_key(caller, channel or "", poll_id))
        if definition is None:
            raise NotFound("Not Found", f"the poll {poll_id} has no definition")
        definition.status = status_of(definition, now=self._clock.now())
        return definition

    async def standing(self, caller: Caller, channel: str, poll_id: str) -> Standing:
        """The poll and its results; raises `NotFound` for one with neither definition nor votes."""
        standing = await self._standing(_key(caller, channel, poll_id))
        if standing is None:
            raise NotFound("Not Found", f"there is no poll {poll_id}")
        return standing

    async def topic(self, caller: Caller, channel: str, poll_id: str) -> Key:
        """What subscribers of a poll follow, `*` for all of the channel; the poll need not exist yet."""
        if poll_id == ANY_NAME:
            return Key("poll", caller.client_id, ANY_NAME, channel)
        key = _key(caller, channel, poll_id)
        await self.updates.watched(key)
        return key

    async def _define(self, key: Key, definition: Definition) -> None:
        now = self._clock.now()
        await self._id_quota.take(key, LIFETIME)
        await self._ballots.define(
            key, json_codec.encode(definition), terms_of(definition), now=now, expires_at=now + LIFETIME
        )
        await self.updates.defined(key, definition)

    async def _definition(self, key: Key) -> Definition | None:
        kept = await self._ballots.definition(key, now=self._clock.now())
        return None if kept is None else msgspec.json.decode(kept, type=Definition)

    async def _standing(self, key: Key) -> Standing | None:
        now = self._clock.now()
        return standing_of(key.name, await self._definition(key), await self._ballots.tally(key, now=now), now=now)

    async def _lets_votes_add_up(self, key: Key, now: int) -> bool:
        kept = await self._ballots.definition(key, now=now)
        return kept is not None and msgspec.json.decode(kept, type=Definition).total_votes_per_user > 1


def _key(caller: Caller, channel: str | None, poll_id: str) -> Key:
    """Where a poll lives: its channel, or none when it is global."""
    return Key("poll", caller.client_id, checked_poll_id(poll_id), "" if is_global(poll_id) else channel)


def _line(entry: Entry, counted: bool) -> bytes:
    """One `Vote` as JSON."""
    count = b',"count":%d' % entry.times if counted or entry.times > 1 else b""
    return b'%b,"value":%b,"timestamp":%d%b}' % (entry.note, entry.choice.encode(), entry.cast_at, count)
