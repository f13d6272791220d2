"""Ballots on SQLite: one row per voter and choice, and running counts."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator, Generator, Sequence
from heapq import merge
from itertools import islice

from msgspec import UNSET

from emulator.core.keys import Key
from emulator.storage.shapes import (
    CLOSED,
    EMPTY_TALLY,
    OVER_ALLOWANCE,
    UNKNOWN_VOTER,
    BallotEntry,
    Cast,
    CastRequest,
    ListedBallot,
    OldDefinition,
    Tally,
    Terms,
)
from emulator.storage.sqlite.ballot_cache import BallotCache, CachedBallot
from emulator.storage.sqlite.catalog import GroupListings
from emulator.storage.sqlite.namespace import Namespace, read_operation, write_operation
from emulator.storage.sqlite.tables import BALLOTS, BY_KEY_ALL_CHANNELS, ENTRIES, TERMS

_SELECT_TOP = "SELECT choice, count FROM tallies WHERE ballot = ? ORDER BY count DESC, since LIMIT ?"
_SELECT_ALIVE = f"SELECT id FROM ballots WHERE {BY_KEY_ALL_CHANNELS} AND expires_at > ?"
_TOP_ALL_CHANNELS = f"""
    SELECT choice, sum(count) FROM tallies WHERE ballot IN ({_SELECT_ALIVE})
    GROUP BY choice ORDER BY sum(count) DESC, min(since) LIMIT ?
"""
_LATEST_ALL_CHANNELS = f"""
    SELECT choice FROM entries WHERE ballot IN ({_SELECT_ALIVE}) AND voter = ? ORDER BY number DESC LIMIT 1
"""

_SELECT_OF_VOTER = "SELECT number, choice, times FROM entries WHERE ballot = ? AND voter = ?"
_SET_DEFINITION = f"UPDATE ballots SET definition = ?, ({TERMS}) = (?, ?, ?, ?, ?, ?, ?) WHERE id = ?"
_DROP_ENTRY = "DELETE FROM entries WHERE number = ?"
_REPLACE_ENTRY = "UPDATE entries SET number = ?, choice = ?, times = ?, cast_at = ?, note = ? WHERE number = ?"
_COUNT_CASTS = "(SELECT coalesce(sum(count), 0) FROM tallies WHERE ballot = ballots.id)"
_DESCRIPTION = f"SELECT {_COUNT_CASTS}, expires_at, definition FROM ballots WHERE id = :id"
_SELECT_ENTRIES = """
    SELECT cast_at, number, voter, choice, times, note FROM entries WHERE ballot = ? AND cast_at >= ?
    ORDER BY cast_at, number
"""

_DEFAULT_TERMS = Terms()
_Row = tuple[int, str, int]
"""number, choice, times: a voter's casts for one choice."""


class SqliteBallots(GroupListings):
    _table, _description, _listed = BALLOTS, _DESCRIPTION, ListedBallot

    def __init__(self, namespace: Namespace) -> None:
        super().__init__(namespace)
        self._cache = BallotCache(namespace)

    @write_operation
    def define(
        self,
        key: Key,
        definition: bytes,
        terms: Terms,
        *,
        now: int,
        expires_at: int,
        only_if: OldDefinition = UNSET,
        clear: bool = False,
    ) -> bool:
        if only_if is not UNSET and self._definition(key, now=now) != only_if:
            return False
        ballot = None if clear else self._cache.find_live(key, now)
        ballot = ballot or self._cache.create(key, expires_at)
        self._execute(_SET_DEFINITION, definition, *terms, ballot.id)
        ballot.definition, ballot.terms = definition, terms
        if ballot.counts is not None and not ballot.counts:
            self._cache.extend(ballot, expires_at)
        return True

    def _definition(self, key: Key, *, now: int) -> bytes | None:
        ballot = self._cache.find_live(key, now)
        return ballot.definition if ballot else None

    definition = read_operation(_definition)

    @write_operation
    def cast(self, key: Key, request: CastRequest, *, now: int, expires_at: int, tally: bool = False) -> Cast:
        voter, choice, note, _, more = request
        (voter + choice).encode()  # raises for text that cannot be stored, before anything is written
        ballot = self._cache.find_live(key, now)
        rows = self._rows_of_voter(ballot, voter)
        previous = rows[-1][1] if rows else None
        terms = ballot.terms if ballot else _DEFAULT_TERMS
        if refused := _refusal_reason(terms, request, rows, now):
            return Cast(refused, previous, self._read_tally(ballot, previous) if tally else EMPTY_TALLY)
        if ballot is None:
            ballot = self._cache.create(key, expires_at)
        replaced, times = rows, 1
        if terms.per_voter > 1:
            replaced = [row for row in rows if row[1] == choice]
            times = more + sum(row[2] for row in replaced)
        number, added = self.group_commit.next_number(), times
        for _, of, fewer in replaced:  # several choices, if more votes were allowed before
            if of == choice:
                added -= fewer  # one step, so that the count never drops to 0 in between
            else:
                self._cache.add_count(ballot, of, -fewer, number)
        for earlier, _, _ in replaced[1:]:
            self._execute(_DROP_ENTRY, earlier)
        if replaced:
            self._execute(_REPLACE_ENTRY, number, choice, times, now, note, replaced[0][0])
        else:
            self._execute(ENTRIES.insert, number, ballot.id, voter, choice, times, now, note)
        if added:
            self._cache.add_count(ballot, choice, added, number)
        self._cache.extend(ballot, expires_at)
        return Cast(None, previous, self._read_tally(ballot, choice) if tally else EMPTY_TALLY)

    @read_operation
    def tally(self, key: Key, *, now: int, voter: str | None = None, top: int | None = None) -> Tally:
        if key.channel is None:
            return self._tally_all_channels(key, now, voter, top)
        ballot = self._cache.find_live(key, now)
        rows = [] if voter is None else self._rows_of_voter(ballot, voter)
        return self._read_tally(ballot, rows[-1][1] if rows else None, top)

    async def entries(
        self, key: Key, *, now: int, since: int = 0, limit: int | None = None
    ) -> AsyncIterator[Sequence[BallotEntry]]:
        """Voting goes on meanwhile, so they are read in a snapshot on a second connection."""
        where, params = self._namespace.key_condition(key)

        def read(connection: sqlite3.Connection) -> Generator[BallotEntry, None, None]:
            alive = f"SELECT id FROM ballots WHERE {where} AND +expires_at > ?"
            ballots = connection.execute(alive, (*params, now)).fetchall()
            rows = merge(*(connection.execute(_SELECT_ENTRIES, (*ballot, since)) for ballot in ballots))
            for at, _, voter, choice, times, note in islice(rows, limit):
                yield BallotEntry(voter, choice, times, at, note)

        async for page in self.group_commit.snapshot(read):
            yield page

    @write_operation
    def drop(self, key: Key, *, now: int) -> list[Key]:
        keys = [key]
        if key.channel is None:
            self.group_commit.flush()
            where, params = self._namespace.key_condition(key)
            rows = self._execute(f"SELECT channel FROM ballots WHERE {where}", *params).fetchall()
            keys = [key._replace(channel=channel) for (channel,) in rows]
        for each in keys:
            self._cache.drop(each)
        return keys

    def _read_tally(self, ballot: CachedBallot | None, choice: str | None, top: int | None = None) -> Tally:
        if ballot is None:
            return EMPTY_TALLY
        if ballot.counts is not None:
            return Tally(ballot.counts.largest(top), choice)
        rows = self._execute(_SELECT_TOP, ballot.id, -1 if top is None else top).fetchall()
        return Tally(tuple(rows), choice)

    def _rows_of_voter(self, ballot: CachedBallot | None, voter: str) -> list[_Row]:
        """Return the voter's rows, oldest first."""
        return sorted(self._execute(_SELECT_OF_VOTER, ballot.id, voter)) if ballot else []

    def _tally_all_channels(self, key: Key, now: int, voter: str | None, top: int | None) -> Tally:
        self.group_commit.flush()
        params = (*self._namespace.key_condition(key)[1], now)
        rows = self._execute(_TOP_ALL_CHANNELS, *params, -1 if top is None else top).fetchall()
        latest = None if voter is None else self._execute(_LATEST_ALL_CHANNELS, *params, voter).fetchone()
        return Tally(tuple(rows), latest[0] if latest else None)


def _refusal_reason(terms: Terms, request: CastRequest, rows: Sequence[_Row], now: int) -> str | None:
    if terms.disabled or not terms.opens_at <= now < terms.closes_at:
        return CLOSED
    if terms.known_voters_only and not request.known:
        return UNKNOWN_VOTER
    if terms.per_voter == 1:
        return None
    if request.times < 1:
        raise ValueError(f"times must be at least 1, not {request.times}")
    on_choice = sum(times for _, choice, times in rows if choice == request.choice)
    if (
        sum(row[2] for row in rows) + request.times > terms.per_voter
        or on_choice + request.times > terms.per_choice
        or len(rows) + (not on_choice) > terms.choices
    ):
        return OVER_ALLOWANCE
    return None
