"""Caches ballots, with their counts if there are few. Changed counts and expiries are written once per group commit."""

from __future__ import annotations

from dataclasses import dataclass

from emulator.core.bounded_cache import BoundedCache
from emulator.core.keys import Key
from emulator.storage.counts import SortedCounts
from emulator.storage.shapes import Terms
from emulator.storage.sqlite.namespace import Namespace, Tables
from emulator.storage.sqlite.tables import BALLOTS, BY_KEY, TALLIES, TERMS

MAX_BALLOTS = 1024
MAX_CHOICES = 256
"""The counts of a ballot with more choices are kept in the database only."""

_LOAD = f"SELECT id, expires_at, definition, {TERMS} FROM ballots WHERE {BY_KEY}"
_LOAD_COUNTS = "SELECT choice, count, since FROM tallies WHERE ballot = ? ORDER BY count DESC, since LIMIT ?"
_SET_EXPIRY = "UPDATE ballots SET expires_at = ? WHERE id = ?"
_SET_COUNT = f"""
    {TALLIES.insert} ON CONFLICT (ballot, choice) DO UPDATE SET count = excluded.count, since = excluded.since
"""
ADD_COUNT = f"{TALLIES.insert} ON CONFLICT (ballot, choice) DO UPDATE SET count = count + excluded.count"
_DROP_ZERO = "DELETE FROM tallies WHERE ballot = ? AND choice = ? AND count = 0"


@dataclass(slots=True, eq=False)
class CachedBallot:
    id: int
    expires_at: int
    terms: Terms
    definition: bytes | None
    counts: SortedCounts | None
    """`None` if there are more than `MAX_CHOICES`."""


class BallotCache(Tables):
    def __init__(self, namespace: Namespace) -> None:
        super().__init__(namespace)
        self._ballots: BoundedCache[Key, CachedBallot] = BoundedCache(MAX_BALLOTS)
        self._changed: dict[CachedBallot, dict[str, None]] = {}
        """Ballots whose expiry may not be in the database yet, and the choices whose counts are not."""
        namespace.caches += (self._ballots.clear, self._changed.clear)

    def find_live(self, key: Key, now: int) -> CachedBallot | None:
        ballot = self._ballots.get(key) or self._load_ballot(key)
        return ballot if ballot is not None and now < ballot.expires_at else None

    def create(self, key: Key, expires_at: int) -> CachedBallot:
        """Create a ballot without casts, in place of the present one."""
        self.drop(key)
        terms = Terms()
        id = self._add_row(BALLOTS, key, expires_at, None, *terms)
        return self._add_to_cache(key, CachedBallot(id, expires_at, terms, None, SortedCounts()))

    def extend(self, ballot: CachedBallot, expires_at: int) -> None:
        """Keep the ballot alive until at least `expires_at`."""
        ballot.expires_at = max(ballot.expires_at, expires_at)
        self._mark_changed(ballot)

    def add_count(self, ballot: CachedBallot, choice: str, by: int, number: int) -> None:
        """Add `by`, which may be negative, to the count of a choice; `number` is the cast's."""
        if ballot.counts is None:
            self._execute(ADD_COUNT, ballot.id, choice, by, number)
            if by < 0:
                self._execute(_DROP_ZERO, ballot.id, choice)
            return
        count, since = ballot.counts.count_and_since(choice, number)
        ballot.counts.set_count(choice, count + by, since)
        self._mark_changed(ballot)[choice] = None
        if len(ballot.counts) > MAX_CHOICES:
            self.flush()
            ballot.counts = None

    def drop(self, key: Key) -> None:
        """Remove the ballot, alive or expired, if there is one; `tidy` deletes its casts and counts."""
        ballot = self._ballots.get(key) or self._load_ballot(key)
        if ballot is not None:
            self._ballots.pop(key)
            self._changed.pop(ballot, None)
            self._remove_row(BALLOTS, ballot.id)

    def flush(self) -> None:
        rows: list[tuple[int, str, int, int]] = []
        for ballot, choices in self._changed.items():
            self._execute(_SET_EXPIRY, ballot.expires_at, ballot.id)
            if ballot.counts is not None:
                rows += [(ballot.id, each, *ballot.counts.count_and_since(each, 0)) for each in choices]
        self.group_commit.connection.executemany(_SET_COUNT, rows)
        self.group_commit.connection.executemany(_DROP_ZERO, [row[:2] for row in rows if not row[2]])
        self._changed.clear()

    def _mark_changed(self, ballot: CachedBallot) -> dict[str, None]:
        """Return the changed choices of a ballot, which the next commit writes with its expiry."""
        self.group_commit.unwritten[self.flush] = None
        return self._changed.setdefault(ballot, {})

    def _load_ballot(self, key: Key) -> CachedBallot | None:
        row = self._find_row(_LOAD, key)
        if row is None:
            return None
        id, expires_at, definition, *terms = row
        rows = self._execute(_LOAD_COUNTS, id, MAX_CHOICES + 1).fetchall()
        counts = SortedCounts(rows) if len(rows) <= MAX_CHOICES else None
        return self._add_to_cache(key, CachedBallot(id, expires_at, Terms(*terms), definition, counts))

    def _add_to_cache(self, key: Key, ballot: CachedBallot) -> CachedBallot:
        if len(self._ballots) >= MAX_BALLOTS:
            self.flush()
        self._ballots[key] = ballot
        return ballot
