"""Everything the service promises about polls, whoever asks and over whatever wire."""

from __future__ import annotations

from collections.abc import AsyncIterator

import msgspec
from msgspec import UNSET, Struct, UnsetType

from emulator import wire
from emulator.callers import Caller
from emulator.clock import Clock, within_time
from emulator.engines.base import Ballots, Entry, Key, Mark
from emulator.errors import NotFound
from emulator.votes.definitions import Definition, PollConfig, checked_definition, status_of, terms_of
from emulator.votes.rules import (
    LIFETIME,
    Poll,
    checked_count,
    checked_poll_id,
    checked_value,
    is_global,
    poll_of,
    refusal,
)


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


class Polls:
    """Polls of all extensions. `channel` is where the caller acts, `None` for all channels together (ruling A4)."""

    def __init__(self, ballots: Ballots, clock: Clock) -> None:
        self._ballots = ballots
        self._clock = clock

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
        note = wire.encode(_Voter(caller.identity, caller.opaque_id))[:-1]
        mark = Mark(caller.identity, choice, note, known=caller.user_id is not None, times=count)
        cast = await self._ballots.cast(key, mark, now=now, expires_at=now + LIFETIME, tally=True)
        if cast.refused:
            raise refusal(cast.refused)
        if channel is None and not is_global(poll_id):  # whose reading covers all channels together (ruling A4)
            return await self.read(caller, channel, poll_id)
        return poll_of(*cast.tally)

    async def clear(self, caller: Caller, channel: str | None, poll_id: str) -> None:
        """End the poll: votes, log and definition are gone. An absent poll is fine."""
        await self._ballots.drop(_key(caller, channel, poll_id), now=self._clock.now())

    async def log(
        self, caller: Caller, channel: str | None, poll_id: str, *, since: int, limit: int | None
    ) -> AsyncIterator[list[bytes]]:
        """The latest vote of every voter from `since` (ms) on, oldest first, in pages of JSON texts (ruling P3)."""
        key, now = _key(caller, channel, poll_id), self._clock.now()
        counted = key.place is not None and await self._lets_votes_add_up(key, now)
        pages = self._ballots.entries(key, now=now, since=within_time(since), limit=limit)
        return ([_line(entry, counted) for entry in page] async for page in pages)

    async def define(self, caller: Caller, channel: str | None, poll_id: str, config: PollConfig) -> None:
        """Create the poll, or give an existing one another definition; its votes stay (ruling P4)."""
        now = self._clock.now()
        key = _key(caller, channel or "", poll_id)
        definition = checked_definition(poll_id, config, now=now)
        await self._ballots.define(
            key, wire.encode(definition), terms_of(definition), now=now, expires_at=now + LIFETIME
        )

    async def definition(self, caller: Caller, channel: str | None, poll_id: str) -> Definition:
        """The poll's definition and status; raises `NotFound` for a poll that has none."""
        now = self._clock.now()
        kept = await self._ballots.definition(_key(caller, channel or "", poll_id), now=now)
        if kept is None:
            raise NotFound("Not Found", f"the poll {poll_id} has no definition")
        definition = msgspec.json.decode(kept, type=Definition)
        definition.status = status_of(definition, now=now)
        return definition

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
