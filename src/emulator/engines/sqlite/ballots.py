"""Ballots on SQLite: a row per voter and choice, and counts that are kept, never recounted."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence

from emulator.engines.base import (
    CLOSED,
    EMPTY_TALLY,
    OVER_ALLOWANCE,
    UNKNOWN_VOTER,
    Cast,
    CastRequest,
    Entry,
    Key,
    Tally,
    Terms,
)
from emulator.engines.sqlite.ballot_cache import BallotCache, CachedBallot
from emulator.engines.sqlite.entries import Readings
from emulator.engines.sqlite.group_commit import GroupCommit
from emulator.engines.sqlite.namespace_ids import KEY_EVERYWHERE, NamespaceIds

_HELD = "SELECT number, slot, choice, times FROM marks WHERE ballot = ? AND voter = ?"
_WRITE = """
    INSERT INTO marks (ballot, voter, slot, choice, times, cast_at, number, note) VALUES (?, ?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT (ballot, voter, slot) DO UPDATE SET choice = excluded.choice, times = excluded.times,
        cast_at = excluded.cast_at, number = excluded.number, note = excluded.note
"""
_DROP_OTHERS = "DELETE FROM marks WHERE ballot = ? AND voter = ? AND slot <> ?"
_TOP = "SELECT choice, count FROM tallies WHERE ballot = ? ORDER BY count DESC, since LIMIT ?"
_ALIVE = f"SELECT id FROM ballots WHERE {KEY_EVERYWHERE} AND expires_at > ?"
_PLACES = f"SELECT place FROM ballots WHERE {KEY_EVERYWHERE}"
_TOP_OF_ALL = f"""
    SELECT choice, sum(count) FROM tallies WHERE ballot IN ({_ALIVE})
    GROUP BY choice ORDER BY sum(count) DESC, min(since) LIMIT ?
"""
_LATEST_OF_ALL = f"SELECT choice FROM marks WHERE ballot IN ({_ALIVE}) AND voter = ? ORDER BY number DESC LIMIT 1"

Row = tuple[int, int, str, int]
"""number, slot, choice, times: what a voter holds, in the order `_HELD` gives it."""

_DEFAULT = Terms()


class SqliteBallots:
    def __init__(self, group_commit: GroupCommit, namespace: NamespaceIds, ballot_cache: BallotCache) -> None:
        self._group_commit = group_commit
        self._namespace = namespace
        self._ballot_cache = ballot_cache
        self._readings = Readings(group_commit, namespace)

    async def define(self, key: Key, definition: bytes, terms: Terms, *, now: int, expires_at: int) -> None:
        await self._group_commit.write(self._define, key, definition, terms, now, expires_at)

    async def definition(self, key: Key, *, now: int) -> bytes | None:
        head = await self._group_commit.read(self._ballot_cache.alive, key, now)
        return head.definition if head else None

    async def cast(self, key: Key, mark: CastRequest, *, now: int, expires_at: int, tally: bool = False) -> Cast:
        return await self._group_commit.write(self._cast, key, mark, now, expires_at, tally)

    async def tally(self, key: Key, *, now: int, voter: str | None = None, top: int | None = None) -> Tally:
        question = self._tally if key.channel is not None else self._tally_of_all
        return await self._group_commit.read(question, key, now, voter, top)

    def entries(
        self, key: Key, *, now: int, since: int = 0, limit: int | None = None
    ) -> AsyncIterator[Sequence[Entry]]:
        return self._readings.entries(key, now, since, limit)

    async def drop(self, key: Key, *, now: int) -> None:
        await self._group_commit.write(self._drop, key, now)

    def _define(self, key: Key, definition: bytes, terms: Terms, now: int, expires_at: int) -> None:
        head = self._ballot_cache.alive(key, now) or self._ballot_cache.fresh(key, now, expires_at)
        self._ballot_cache.define(head, definition, terms)
        if head.counts is not None and not head.counts:
            self._ballot_cache.move_end(head, expires_at)

    def _cast(self, key: Key, mark: CastRequest, now: int, expires_at: int, tally: bool) -> Cast:
        voter, choice, note, _, _ = mark
        (voter + choice).encode()  # what cannot be stored has to fail before anything is written
        head = self._ballot_cache.alive(key, now)
        held = self._held_by(voter, head)
        previous = max(held)[2] if held else None
        terms = head.terms if head else _DEFAULT
        if refused := _refusal(terms, mark, held, now):
            return Cast(refused, previous, self._counted(head, previous) if tally else EMPTY_TALLY)
        if head is None:
            head = self._ballot_cache.fresh(key, now, expires_at)
        replaced = held if terms.per_voter == 1 else [row for row in held if row[2] == choice]
        if replaced and self._readings.under_way:
            self._readings.keep(head.id, voter, [row[0] for row in replaced])
        if terms.per_voter == 1:
            slot, times = held[0][1] if held else 0, 1
            if len(held) > 1:
                self._group_commit.connection.execute(_DROP_OTHERS, (head.id, voter, slot))
        else:
            slot = replaced[0][1] if replaced else 1 + max((row[1] for row in held), default=-1)
            times = mark.times + sum(row[3] for row in replaced)
        number = self._namespace.number()
        self._group_commit.connection.execute(_WRITE, (head.id, voter, slot, choice, times, now, number, note))
        self._count(head, choice, times, replaced, number)
        self._ballot_cache.move_end(head, expires_at)
        return Cast(None, previous, self._counted(head, choice) if tally else EMPTY_TALLY)

    def _held_by(self, voter: str, head: CachedBallot | None) -> list[Row]:
        return [] if head is None else self._group_commit.connection.execute(_HELD, (head.id, voter)).fetchall()

    def _count(self, head: CachedBallot, choice: str, times: int, replaced: Sequence[Row], number: int) -> None:
        for _, _, earlier, fewer in replaced:
            if earlier == choice:
                times -= fewer  # one step, so that a choice that is held on has no gap
            else:
                self._ballot_cache.shift(head, earlier, -fewer, number)
        if times:
            self._ballot_cache.shift(head, choice, times, number)

    def _counted(self, head: CachedBallot | None, choice: str | None, top: int | None = None) -> Tally:
        if head is None:
            return EMPTY_TALLY
        if head.counts is not None:
            return Tally(head.counts.pairs(top), choice)
        rows = self._group_commit.connection.execute(_TOP, (head.id, -1 if top is None else top)).fetchall()
        return Tally(tuple(rows), choice)

    def _tally(self, key: Key, now: int, voter: str | None, top: int | None) -> Tally:
        head = self._ballot_cache.alive(key, now)
        held = self._held_by(voter, head) if voter is not None else []
        return self._counted(head, max(held)[2] if held else None, top)

    def _tally_of_all(self, key: Key, now: int, voter: str | None, top: int | None) -> Tally:
        self._ballot_cache.flush()
        ballots = (*self._namespace.everywhere(key), now)
        connection = self._group_commit.connection
        rows = connection.execute(_TOP_OF_ALL, (*ballots, -1 if top is None else top)).fetchall()
        latest = None if voter is None else connection.execute(_LATEST_OF_ALL, (*ballots, voter)).fetchone()
        return Tally(tuple(rows), latest[0] if latest else None)

    def _drop(self, key: Key, now: int) -> None:
        if key.channel is not None:
            self._ballot_cache.drop(key, now)
            return
        self._ballot_cache.flush()
        for (place,) in self._group_commit.connection.execute(_PLACES, self._namespace.everywhere(key)).fetchall():
            self._ballot_cache.drop(key._replace(channel=place), now)


def _refusal(terms: Terms, mark: CastRequest, held: Sequence[Row], now: int) -> str | None:
    if terms.disabled or not terms.opens_at <= now < terms.closes_at:
        return CLOSED
    if terms.known_voters_only and not mark.known:
        return UNKNOWN_VOTER
    if terms.per_voter == 1:
        return None
    if mark.times < 1:
        raise ValueError(f"a mark counts at least once, not {mark.times} times")
    on_choice = sum(times for _, _, choice, times in held if choice == mark.choice)
    if (
        sum(row[3] for row in held) + mark.times > terms.per_voter
        or on_choice + mark.times > terms.per_choice
        or len(held) + (not on_choice) > terms.choices
    ):
        return OVER_ALLOWANCE
    return None
