"""Everything the service promises about rankings."""

from __future__ import annotations

from msgspec import UNSET, Struct, UnsetType

from emulator.callers import Caller
from emulator.clock import DAY, Clock
from emulator.engines.base import Ballots, CastRequest, Key
from emulator.limits.id_quota import IdQuota

LIFETIME = DAY
"""A buffer is removed this long after its last entry (Limits)."""
TOP = 100
GLOBAL = "global-"


class Accepted(Struct):
    """The answer to a submission."""

    accepted: bool
    original: str | UnsetType = UNSET
    """The caller's previous answer, if there was one."""


class Score(Struct):
    """How many users submitted this very text."""

    key: str
    score: int


class Rankings:
    """Buffers with at most one answer per user. `channel` as for polls: `None` spans all (ruling A4)."""

    def __init__(self, ballots: Ballots, clock: Clock, id_quota: IdQuota) -> None:
        self._ballots = ballots
        self._clock = clock
        self._id_quota = id_quota

    async def submit(self, caller: Caller, channel: str | None, buffer_id: str, answer: str) -> Accepted:
        """Store the caller's answer in place of an earlier one. The text is kept byte for byte."""
        now = self._clock.now()
        key = _key(caller, channel or "", buffer_id)
        await self._id_quota.take(key, LIFETIME)
        mark = CastRequest(caller.identity, answer, caller.opaque_id.encode())
        cast = await self._ballots.cast(key, mark, now=now, expires_at=now + LIFETIME)
        return Accepted(True, UNSET if cast.previous is None else cast.previous)

    async def read(self, caller: Caller, channel: str | None, buffer_id: str) -> list[Score]:
        """At most the top 100 answers by score; ties in order of first submission."""
        tally = await self._ballots.tally(_key(caller, channel, buffer_id), now=self._clock.now(), top=TOP)
        return [Score(answer, users) for answer, users in tally.counts]

    async def clear(self, caller: Caller, channel: str | None, buffer_id: str) -> None:
        """Remove the buffer; an absent one is fine."""
        key = _key(caller, channel, buffer_id)
        await self._ballots.drop(key, now=self._clock.now())
        await self._id_quota.free(key)


def _key(caller: Caller, channel: str | None, buffer_id: str) -> Key:
    """Where a buffer lives: its channel, or none when it is the extension's."""
    return Key("rank", caller.client_id, buffer_id, "" if buffer_id.startswith(GLOBAL) else channel)
