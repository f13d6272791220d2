"""Caches ballots, with their counts if there are few, and the casts of each voter.

Changes are written once per group commit.
"""

from __future__ import annotations

import mmap
from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from emulator.core.bounded_cache import BoundedCache
from emulator.core.keys import Key
from emulator.storage.shapes import Terms
from emulator.storage.sqlite.namespace import Namespace, Tables
from emulator.storage.sqlite.tables import BALLOTS, BY_KEY, ENTRIES, TALLIES, TERMS

MAX_HELD: Final = 32_768
"""Voters whose casts are cached: some 15 MB, at 300 to 500 bytes each."""
FILTER_SIZE: Final = 1 << 21
"""Bytes of the filter of voters. The operating system provides each 4 KiB of it when a bit there is set."""
MAX_ADDED: Final = FILTER_SIZE * 4
"""Voters before the filter starts again: then half of its bits are set, and half of the new voters seem known."""


_OF_VOTER = "SELECT number, slot, choice, times FROM entries WHERE ballot = ? AND voter = ? ORDER BY number"
_WRITE = f"""
    {ENTRIES.insert} ON CONFLICT (ballot, voter, slot) DO UPDATE SET choice = excluded.choice, times = excluded.times,
        cast_at = excluded.cast_at, number = excluded.number, note = excluded.note, whole = excluded.whole
"""
_DROP_OTHERS = "DELETE FROM entries WHERE ballot = ? AND voter = ? AND slot <> ?"

Row = tuple[int, int, str, int]
"""number, slot, choice, times: a voter's casts for one choice."""
Mark = tuple[int, int, str, int, str, int, int, bytes, bool]
"""The columns of a row in the order of `ENTRIES`."""


class VoterFilter:
    """A set of voters with false positives: one bit each in a table that all ballots share.

    After a million voters, the filter wrongly reports 6 % of new voters as known.
    """

    def __init__(self) -> None:
        self.generation = 1
        """Changes when the table starts again, without the voters that were added before."""
        self._bits = mmap.mmap(-1, FILTER_SIZE)
        self._added = 0

    def add(self, ballot: int, voter: str) -> bool:
        """Add a voter; return True only if the voter was not added before in this generation."""
        place = hash((ballot, voter))
        byte, bit = place & (FILTER_SIZE - 1), 1 << (place >> 40 & 7)
        before = self._bits[byte]
        if before & bit:
            return False
        self._bits[byte] = before | bit
        self._added += 1
        if self._added >= MAX_ADDED:
            self._bits.close()
            self._bits = mmap.mmap(-1, FILTER_SIZE)
            self._added = 0
            self.generation += 1
        return True


class Marks(Tables):
    """The rows that voters have now. A query on the table sees all of them only after `flush`."""

    def __init__(self, namespace: Namespace) -> None:
        super().__init__(namespace)
        self._unsaved: dict[tuple[int, str, int], Mark] = {}
        self._held: BoundedCache[tuple[int, str], tuple[Row, ...]] = BoundedCache(MAX_HELD)
        self._filter = VoterFilter()

    @property
    def generation(self) -> int:
        """The voter filter's generation. A ballot without casts records it: the filter will contain all its voters."""
        return self._filter.generation

    def rows_of_voter(self, ballot: int, voter: str) -> tuple[Row, ...]:
        """Return the voter's rows by `number`."""
        rows = self._held.get((ballot, voter))
        if rows is None:
            rows = tuple(self._group_commit.connection.execute(_OF_VOTER, (ballot, voter)).fetchall())
            if rows:
                self._hold(ballot, voter, rows)
        return rows

    def rows_before_cast(self, ballot: int, voter: str, generation: int) -> tuple[Row, ...]:
        """Return the rows of a voter who is about to cast, by `number`. `generation` is the ballot's, or 0."""
        rows = self._held.get((ballot, voter))
        if rows is None:
            # A voter that joins the filter only now has no rows, if it has all voters of the ballot.
            if generation == self._filter.generation and self._filter.add(ballot, voter):
                return ()
            rows = self.rows_of_voter(ballot, voter)
        return rows

    def note_first_voter(self, ballot: int, voter: str) -> None:
        """Add the voter whose cast created a ballot to the filter, as `rows_before_cast` adds all later ones."""
        self._filter.add(ballot, voter)

    def write(self, mark: Mark, others: tuple[Row, ...]) -> None:
        """Add a row, or replace the row in the same slot. `others` are the voter's rows in other slots."""
        number, ballot, voter, slot, choice, times, *_ = mark
        self._unsaved[ballot, voter, slot] = mark
        self._hold(ballot, voter, (*others, (number, slot, choice, times)))

    def drop_others(self, ballot: int, voter: str, slot: int) -> None:
        """Delete the voter's rows in all other slots; `write` follows."""
        self.flush()
        self._group_commit.connection.execute(_DROP_OTHERS, (ballot, voter, slot))

    def flush(self) -> None:
        if self._unsaved:
            self._group_commit.connection.executemany(_WRITE, self._unsaved.values())
            self._unsaved.clear()

    def forget_read(self) -> None:
        self._held.retain({(ballot, voter) for ballot, voter, _ in self._unsaved})

    def roll_back(self) -> None:
        self._unsaved.clear()
        self._held.clear()

    def _hold(self, ballot: int, voter: str, rows: tuple[Row, ...]) -> None:
        """Cache the voter's rows. Rows that this evicts are written first, so a voter who is not held can be read."""
        if self._unsaved and len(self._held) >= MAX_HELD and self._held.get((ballot, voter)) is None:
            self.flush()
        self._held[ballot, voter] = rows


MAX_BALLOTS = 1024
MAX_CHOICES = 256
"""The counts of a ballot with more choices are kept in the database only."""

_LOAD = f"SELECT id, expires_at, definition, {TERMS} FROM ballots WHERE {BY_KEY}"
_LOAD_COUNTS = "SELECT choice, count, since FROM tallies WHERE ballot = ? ORDER BY count DESC, since LIMIT ?"
_DEFINE = f"UPDATE ballots SET definition = ?, ({TERMS}) = (?, ?, ?, ?, ?, ?, ?) WHERE id = ?"
_SET_EXPIRY = "UPDATE ballots SET expires_at = ? WHERE id = ?"
_SET_COUNT = f"""
    {TALLIES.insert} ON CONFLICT (ballot, choice) DO UPDATE SET count = excluded.count, since = excluded.since
"""
ADD_COUNT = f"{TALLIES.insert} ON CONFLICT (ballot, choice) DO UPDATE SET count = count + excluded.count"
_DROP_COUNT = "DELETE FROM tallies WHERE ballot = ? AND choice = ?"
_DROP_ZERO = "DELETE FROM tallies WHERE ballot = ? AND choice = ? AND count = 0"


class Histogram:
    """The counts of one ballot, sorted as a tally returns them. Remembers which are not in the database yet."""

    __slots__ = ("_changed", "_order", "_pairs", "_ranks")

    def __init__(self, rows: list[tuple[str, int, int]]) -> None:
        """`rows` are columns `choice, count, since` of the table `tallies`, in a tally's order."""
        self._ranks = {choice: (-count, since) for choice, count, since in rows}
        self._order = list(self._ranks.values())
        self._pairs = [(choice, count) for choice, count, _ in rows]
        self._changed: dict[str, None] = {}

    def __len__(self) -> int:
        return len(self._pairs)

    def as_tuples(self, top: int | None = None) -> tuple[tuple[str, int], ...]:
        return tuple(self._pairs if top is None else self._pairs[:top])

    def take_changes(self) -> tuple[list[tuple[str, int, int]], list[str]]:
        """Return the rows that changed since the last call, and the choices that no longer have casts."""
        changed, self._changed = self._changed, {}
        rows = [(choice, -rank[0], rank[1]) for choice in changed if (rank := self._ranks.get(choice))]
        return rows, [choice for choice in changed if choice not in self._ranks]

    def add(self, choice: str, by: int, number: int) -> None:
        """Add `by`, which may be negative, to the count of a choice; `number` is the cast's."""
        self._changed[choice] = None
        rank = self._ranks.pop(choice, None)
        if rank is None:
            rank = (-by, number)
        else:
            at = bisect_left(self._order, rank)
            del self._order[at], self._pairs[at]
            rank = (rank[0] - by, rank[1])
        if rank[0]:
            at = bisect_left(self._order, rank)
            self._order.insert(at, rank)
            self._pairs.insert(at, (choice, -rank[0]))
            self._ranks[choice] = rank


@dataclass(slots=True, eq=False)
class CachedBallot:
    id: int
    expires_at: int
    stored_expiry: int
    """`expires_at` in the database."""
    terms: Terms
    definition: bytes | None
    counts: Histogram | None
    """`None` if there are more than `MAX_CHOICES`."""
    generation: int = 0
    """The generation of the voter filter when the ballot last had no casts; 0 if the filter may lack some voters."""


class BallotCache(Tables):
    def __init__(self, namespace: Namespace) -> None:
        super().__init__(namespace)
        self.marks = Marks(namespace)
        self._ballots: BoundedCache[Key, CachedBallot] = BoundedCache(MAX_BALLOTS)
        self._changed: dict[CachedBallot, None] = {}

    def find_live(self, key: Key, now: int) -> CachedBallot | None:
        ballot = self._ballots.get(key) or self._load(key)
        return ballot if ballot is not None and now < ballot.expires_at else None

    def create(self, key: Key, expires_at: int) -> CachedBallot:
        """Create a ballot where none is alive."""
        self.drop(key)
        id = self._namespace.next_number()
        terms = Terms()
        row = (id, *self._namespace.params(key), expires_at, None, *terms)
        self._group_commit.connection.execute(BALLOTS.insert, row)
        return self._add(
            key, CachedBallot(id, expires_at, expires_at, terms, None, Histogram([]), self.marks.generation)
        )

    def define(self, ballot: CachedBallot, definition: bytes, terms: Terms) -> None:
        self._group_commit.connection.execute(_DEFINE, (definition, *terms, ballot.id))
        ballot.definition, ballot.terms = definition, terms

    def extend(self, ballot: CachedBallot, expires_at: int) -> None:
        """Keep the ballot alive until at least `expires_at`."""
        if expires_at > ballot.expires_at:
            ballot.expires_at = expires_at
        self._note_change(ballot)

    def add_count(self, ballot: CachedBallot, choice: str, by: int, number: int) -> None:
        """Add `by`, which may be negative, to the count of a choice; `number` is the cast's."""
        if ballot.counts is None:
            self._group_commit.connection.execute(ADD_COUNT, (ballot.id, choice, by, number))
            if by < 0:
                self._group_commit.connection.execute(_DROP_ZERO, (ballot.id, choice))
            return
        ballot.counts.add(choice, by, number)
        self._note_change(ballot)
        if len(ballot.counts) > MAX_CHOICES:
            self._flush_counts([ballot])
            ballot.counts = None

    def drop(self, key: Key) -> None:
        """Remove the ballot, alive or expired. An absent ballot is not an error."""
        ballot = self._ballots.get(key) or self._load(key)
        if ballot is not None:
            self.remove(ballot.id, key)

    def remove(self, id: int, key: Key) -> None:
        """Remove a ballot; `tidy`, which another namespace of the file may call, deletes its casts and counts."""
        self.marks.flush()  # while the ballot is not listed as removed: no row may be written after it was tidied
        ballot = self._ballots.pop(key)
        if ballot is not None:
            self._changed.pop(ballot, None)
        BALLOTS.remove(self._group_commit.connection, id)

    def flush(self) -> None:
        self.marks.flush()
        for ballot in self._changed:
            if ballot.expires_at != ballot.stored_expiry:
                self._group_commit.connection.execute(_SET_EXPIRY, (ballot.expires_at, ballot.id))
                ballot.stored_expiry = ballot.expires_at
        self._flush_counts(self._changed)
        self._changed.clear()

    def forget_read(self) -> None:
        self.marks.forget_read()
        self._ballots.retain([key for key, ballot in self._ballots.items() if ballot in self._changed])

    def roll_back(self) -> None:
        self.marks.roll_back()
        self._ballots.clear()
        self._changed.clear()

    def _note_change(self, ballot: CachedBallot) -> None:
        self._changed[ballot] = None
        self._group_commit.unwritten[self] = None

    def _flush_counts(self, ballots: Iterable[CachedBallot]) -> None:
        changed: list[tuple[object, ...]] = []
        removed: list[tuple[object, ...]] = []
        for ballot in ballots:
            if ballot.counts is not None:
                rows, choices = ballot.counts.take_changes()
                changed += [(ballot.id, *row) for row in rows]
                removed += [(ballot.id, choice) for choice in choices]
        self._group_commit.connection.executemany(_SET_COUNT, changed)
        if removed:
            self._group_commit.connection.executemany(_DROP_COUNT, removed)

    def _load(self, key: Key) -> CachedBallot | None:
        row = self._group_commit.connection.execute(_LOAD, self._namespace.params(key)).fetchone()
        if row is None:
            return None
        id, expires_at, definition, *terms = row
        rows = self._group_commit.connection.execute(_LOAD_COUNTS, (id, MAX_CHOICES + 1)).fetchall()
        counts = Histogram(rows) if len(rows) <= MAX_CHOICES else None
        generation = 0 if rows else self.marks.generation
        ballot = CachedBallot(id, expires_at, expires_at, Terms(*terms), definition, counts, generation)
        return self._add(key, ballot)

    def _add(self, key: Key, ballot: CachedBallot) -> CachedBallot:
        if len(self._ballots) >= MAX_BALLOTS:
            self.flush()
        self._ballots[key] = ballot
        return ballot
