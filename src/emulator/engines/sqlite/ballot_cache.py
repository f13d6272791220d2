"""What is known of a ballot as a whole: its end, terms, definition, and its counts while they are few.

The ballots in use are held in memory between turns, and what changed of them is written once per turn.
"""

from __future__ import annotations

from emulator.engines.base import Key, Terms
from emulator.engines.sqlite.group_commit import GroupCommit
from emulator.engines.sqlite.histogram import Histogram
from emulator.engines.sqlite.namespace_ids import KEY, NamespaceIds

MOST_HEADS = 1024
MOST_COUNTS = 256
"""A ballot with more choices is counted in the database only."""

_TERMS = "opens_at, closes_at, disabled, known_voters_only, per_voter, per_choice, choices"
_LOAD = f"SELECT id, expires_at, definition, {_TERMS} FROM ballots WHERE {KEY}"
_LOAD_COUNTS = "SELECT choice, count, since FROM tallies WHERE ballot = ? ORDER BY count DESC, since LIMIT ?"
_CREATE = f"""
    INSERT INTO ballots (id, space, shelf, owner, name, holder, place, expires_at, {_TERMS})
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
"""
_DEFINE = f"UPDATE ballots SET definition = ?, ({_TERMS}) = (?, ?, ?, ?, ?, ?, ?) WHERE id = ?"
_MOVE_END = "UPDATE ballots SET expires_at = ? WHERE id = ?"
_SET_COUNT = """
    INSERT INTO tallies (ballot, choice, count, since) VALUES (?, ?, ?, ?)
    ON CONFLICT (ballot, choice) DO UPDATE SET count = excluded.count, since = excluded.since
"""
_ADD_COUNT = """
    INSERT INTO tallies (ballot, choice, count, since) VALUES (?, ?, ?, ?)
    ON CONFLICT (ballot, choice) DO UPDATE SET count = count + excluded.count
"""
_DROP_COUNT = "DELETE FROM tallies WHERE ballot = ? AND choice = ?"
_DROP_EMPTY = "DELETE FROM tallies WHERE ballot = ? AND choice = ? AND count = 0"


class CachedBallot:
    __slots__ = ("counts", "definition", "expires_at", "id", "stored_end", "terms")

    def __init__(
        self, id: int, expires_at: int, *, terms: Terms, definition: bytes | None, counts: Histogram | None
    ) -> None:
        self.id = id
        self.expires_at = expires_at
        self.stored_end = expires_at
        self.terms = terms
        self.definition = definition
        self.counts = counts
        """None when there are more than `MOST_COUNTS`."""


class BallotCache:
    def __init__(self, group_commit: GroupCommit, namespace: NamespaceIds) -> None:
        self._group_commit = group_commit
        self._namespace = namespace
        self._held: dict[Key, CachedBallot] = {}
        self._changed: set[CachedBallot] = set()

    def alive(self, key: Key, now: int) -> CachedBallot | None:
        head = self._held.get(key) or self._loaded(key)
        return head if head is not None and now < head.expires_at else None

    def fresh(self, key: Key, now: int, expires_at: int) -> CachedBallot:
        """A new ballot under a key where none is alive."""
        self.drop(key, now)
        id = self._namespace.number()
        terms = Terms()
        self._group_commit.connection.execute(_CREATE, (id, *self._namespace.of(key), expires_at, *terms))
        return self._hold(key, CachedBallot(id, expires_at, terms=terms, definition=None, counts=Histogram([])))

    def define(self, head: CachedBallot, definition: bytes, terms: Terms) -> None:
        self._group_commit.connection.execute(_DEFINE, (definition, *terms, head.id))
        head.definition, head.terms = definition, terms

    def move_end(self, head: CachedBallot, expires_at: int) -> None:
        head.expires_at = expires_at
        self._changed.add(head)

    def shift(self, head: CachedBallot, choice: str, by: int, number: int) -> None:
        """Count `by` more or fewer casts for a choice."""
        if head.counts is None:
            self._group_commit.connection.execute(_ADD_COUNT, (head.id, choice, by, number))
            if by < 0:
                self._group_commit.connection.execute(_DROP_EMPTY, (head.id, choice))
            return
        head.counts.shift(choice, by, number)
        self._changed.add(head)
        if len(head.counts) > MOST_COUNTS:
            self._flush_counts(head)
            head.counts = None

    def drop(self, key: Key, now: int) -> None:
        """Put the ballot out of reach, dead or alive; absent is fine."""
        head = self._held.get(key) or self._loaded(key)
        if head is None:
            return
        if head.expires_at <= now:
            self._namespace.expired(key, head.expires_at)
        self.tombstone(head.id, key)

    def tombstone(self, id: int, key: Key) -> None:
        """Take a ballot's head away and leave its rows to `purge`."""
        head = self._held.pop(key, None)
        if head is not None:
            self._changed.discard(head)
        self._group_commit.connection.execute("DELETE FROM ballots WHERE id = ?", (id,))
        self._group_commit.connection.execute("INSERT INTO dead VALUES (?)", (id,))

    def flush(self) -> None:
        for head in self._changed:
            if head.expires_at != head.stored_end:
                self._group_commit.connection.execute(_MOVE_END, (head.expires_at, head.id))
                head.stored_end = head.expires_at
            self._flush_counts(head)
        self._changed.clear()

    def forget(self) -> None:
        self._held.clear()
        self._changed.clear()

    def _flush_counts(self, head: CachedBallot) -> None:
        if head.counts is None:
            return
        held, gone = head.counts.taken_changes()
        self._group_commit.connection.executemany(_SET_COUNT, [(head.id, *row) for row in held])
        self._group_commit.connection.executemany(_DROP_COUNT, [(head.id, choice) for choice in gone])

    def _loaded(self, key: Key) -> CachedBallot | None:
        row = self._group_commit.connection.execute(_LOAD, self._namespace.of(key)).fetchone()
        if row is None:
            return None
        id, expires_at, definition, opens_at, closes_at, disabled, known_voters_only, *limits = row
        counts = self._group_commit.connection.execute(_LOAD_COUNTS, (id, MOST_COUNTS + 1)).fetchall()
        terms = Terms(opens_at, closes_at, bool(disabled), bool(known_voters_only), *limits)
        few = Histogram(counts) if len(counts) <= MOST_COUNTS else None
        return self._hold(key, CachedBallot(id, expires_at, terms=terms, definition=definition, counts=few))

    def _hold(self, key: Key, head: CachedBallot) -> CachedBallot:
        if len(self._held) >= MOST_HEADS:
            self.flush()
            del self._held[next(iter(self._held))]
        self._held[key] = head
        return head
