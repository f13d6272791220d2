"""The ranking service: one free-text answer per user, and the most frequent answers."""

from __future__ import annotations

from collections.abc import Mapping
from operator import attrgetter
from typing import Final

from msgspec import UNSET, Struct, UnsetType

from emulator.callers import GLOBAL, Caller, check_extension_wide, is_global
from emulator.changes import Change, Commits
from emulator.clock import DAY, Clock
from emulator.engines.shapes import Ballots, CastRequest, Key
from emulator.features.ranking.rules import STORED
from emulator.hints import Hints
from emulator.kinds import Kind, Measured, Shape, Subject
from emulator.limits.id_quota import IdQuota
from emulator.limits.listing_pages import Page
from emulator.observability.audit import audit

LIFETIME = DAY
"""A ranking expires this long after its last answer, in ms (Limits)."""
TOP = 100


class Accepted(Struct):
    """The response to a submitted answer."""

    accepted: bool
    original: str | UnsetType = UNSET
    """The caller's previous answer, if any."""


class Score(Struct):
    """An answer and the number of users who submitted exactly this text."""

    key: str
    score: int


class ListedRanking(Struct):
    """One ranking."""

    id: str
    channel_id: str
    """Empty for a ranking of no channel, such as a global one."""
    count: int
    """The users who answered."""
    latest: int
    """Unix ms of the latest answer."""


class RankingList(Struct):
    """Rankings by channel, then id."""

    rankings: list[ListedRanking]
    next: str
    """The cursor of the next page; `0` if there is none."""


class Rankings:
    """Rankings of all extensions. `channel` is the channel of the call; `None` is all channels together (ruling A4)."""

    def __init__(self, ballots: Ballots, clock: Clock, id_quota: IdQuota, commits: Commits, hints: Hints) -> None:
        self._ballots = ballots
        self._clock = clock
        self._id_quota = id_quota
        self._commits = commits
        self._hints = hints

    async def submit(self, caller: Caller, channel: str | None, ranking_id: str, answer: str) -> Accepted:
        """Store the caller's answer, replacing an earlier one. The text is kept byte for byte."""
        now = self._clock.now()
        key = _key(caller, channel or "", ranking_id)
        await self._id_quota.claim(key, LIFETIME, now=now)
        request = CastRequest(caller.opaque_id, answer, (caller.user_id or "").encode())
        cast = await self._ballots.cast(key, request, now=now, expires_at=now + LIFETIME)
        await self._commits.committed(Change(key, "answer", caller.opaque_id, answer, now))
        return Accepted(True, UNSET if cast.previous is None else cast.previous)

    async def counts(self, caller: Caller, channel: str | None, ranking_id: str) -> Mapping[str, int]:
        """Return the number of users for each answer."""
        return dict((await self._ballots.tally(_key(caller, channel, ranking_id), now=self._clock.now())).counts)

    async def measure(self, caller: Caller, channel: str | None, id: str, user: str) -> Measured:
        return Measured(await self.counts(caller, channel, id))

    async def read(self, caller: Caller, channel: str | None, ranking_id: str) -> list[Score]:
        """Return the top 100 answers by score; ties are in order of first submission."""
        key = _key(caller, channel, ranking_id)
        tally = await self._ballots.tally(key, now=self._clock.now(), top=TOP)
        if not tally.counts:
            await self._hints.hint_if_absent(key)
        return [Score(answer, users) for answer, users in tally.counts]

    async def clear(self, caller: Caller, channel: str | None, ranking_id: str) -> None:
        """Delete the ranking. Raises `Forbidden` if all channels share it and the caller is only a broadcaster."""
        if is_global(ranking_id):
            check_extension_wide(caller, ranking_id)
        key = _key(caller, channel, ranking_id)
        if found := await self._ballots.drop(key, now=self._clock.now()):
            rankings = len(found) if key.channel is None else ""
            audit("rankings deleted", caller, channel=channel, ranking=ranking_id, rankings=rankings)
        await self._commits.committed(*(Change(dropped, "cleared", caller.opaque_id) for dropped in found))
        for dropped in found:
            await self._id_quota.release(dropped)

    async def listing(self, caller: Caller, channel: str | None, page: Page) -> RankingList:
        """Return a page of the live rankings of a channel, or of all channels."""
        group = Key("rank", caller.client_id, "", channel)
        found = await self._ballots.listing(group, now=self._clock.now(), limit=page.limit + 1, after=page.after(group))
        # A ranking expires a fixed time after its latest answer.
        return RankingList(
            [
                ListedRanking(key.name, key.channel or "", casts, expires_at - LIFETIME)
                for key, casts, expires_at, _ in found[: page.limit]
            ],
            page.next(found),
        )


def _key(caller: Caller, channel: str | None, ranking_id: str) -> Key:
    """Return the key of a ranking; a global ranking belongs to no channel."""
    return Key("rank", caller.client_id, ranking_id, "" if is_global(ranking_id) else channel)


RANKINGS: Final = Kind(
    "rankings",
    "the rankings, with their answers",
    ("rank",),
    Shape.BALLOTS,
    LIFETIME,
    "rankings",
    STORED,
    waits_for=Subject("rank", "rank", frozenset({"count", "key", "score"}), "default", shared=GLOBAL),
    measure=attrgetter("rankings.measure"),
)
