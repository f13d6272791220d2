"""The casts of each voter: rows of the table `marks`, written once per group commit and cached."""

from __future__ import annotations

import mmap
from typing import Final

from emulator.bounded_cache import BoundedCache
from emulator.engines.sqlite.group_commit import GroupCommit
from emulator.engines.sqlite.namespace_ids import NamespaceIds, Tables

MAX_HELD: Final = 32_768
"""Voters whose casts are cached: some 15 MB, at 300 to 500 bytes each."""
FILTER_SIZE: Final = 1 << 21
"""Bytes of the filter of voters. The operating system provides each 4 KiB of it when a bit there is set."""
MAX_ADDED: Final = FILTER_SIZE * 4
"""Voters before the filter starts again: then half of its bits are set, and half of the new voters seem known."""


_OF_VOTER = "SELECT number, slot, choice, times FROM marks WHERE ballot = ? AND voter = ? ORDER BY number"
_WRITE = """
    INSERT INTO marks (ballot, voter, slot, choice, times, cast_at, number, note, whole)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT (ballot, voter, slot) DO UPDATE SET choice = excluded.choice, times = excluded.times,
        cast_at = excluded.cast_at, number = excluded.number, note = excluded.note, whole = excluded.whole
"""
_DROP_OTHERS = "DELETE FROM marks WHERE ballot = ? AND voter = ? AND slot <> ?"

Row = tuple[int, int, str, int]
"""number, slot, choice, times: a voter's casts for one choice."""
Mark = tuple[int, str, int, str, int, int, int, bytes, bool]
"""The columns of a row in the order of `_WRITE`."""


class VoterFilter:
    """A set of voters with false positives: one bit each in a table that all ballots share.

    After a million voters, 6 % of the new ones seem known.
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

    def __init__(self, group_commit: GroupCommit, namespace: NamespaceIds) -> None:
        super().__init__(group_commit, namespace)
        self._unsaved: dict[tuple[int, str, int], Mark] = {}
        self._held: BoundedCache[tuple[int, str], tuple[Row, ...]] = BoundedCache(MAX_HELD)
        self._filter = VoterFilter()

    @property
    def generation(self) -> int:
        """That of the filter of voters. A ballot without casts notes it: the filter will contain all of its voters."""
        return self._filter.generation

    def of_voter(self, ballot: int, voter: str) -> tuple[Row, ...]:
        """Return the voter's rows by `number`."""
        rows = self._held.get((ballot, voter))
        if rows is None:
            rows = tuple(self._group_commit.connection.execute(_OF_VOTER, (ballot, voter)).fetchall())
            if rows:
                self._held[ballot, voter] = rows
        return rows

    def of_caster(self, ballot: int, voter: str, generation: int) -> tuple[Row, ...]:
        """Do the same for a voter who is about to cast. `generation` is that of the ballot, or 0."""
        rows = self._held.get((ballot, voter))
        if rows is None:
            # A voter that joins the filter only now has no rows, if it has all voters of the ballot.
            if generation == self._filter.generation and self._filter.add(ballot, voter):
                return ()
            rows = self.of_voter(ballot, voter)
        return rows

    def write(self, mark: Mark, others: tuple[Row, ...]) -> None:
        """Add a row, or replace the one in its slot. `others` are the voter's rows in other slots."""
        ballot, voter, slot, choice, times, _, number, _, _ = mark
        self._unsaved[ballot, voter, slot] = mark
        self._held[ballot, voter] = (*others, (number, slot, choice, times))

    def drop_others(self, ballot: int, voter: str, slot: int) -> None:
        """Delete the voter's rows in all other slots; `write` follows."""
        self.flush()
        self._group_commit.connection.execute(_DROP_OTHERS, (ballot, voter, slot))

    def flush(self) -> None:
        if self._unsaved:
            self._group_commit.save(_WRITE, self._unsaved.values())
            self._unsaved.clear()

    def forget_read(self) -> None:
        self._held.retain({(ballot, voter) for ballot, voter, _ in self._unsaved})

    def roll_back(self) -> None:
        self._unsaved.clear()
        self._held.clear()
