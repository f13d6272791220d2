"""The ascending numbers that identify new rows of a database, whichever namespace they belong to."""

from __future__ import annotations

from emulator.engines.sqlite.group_commit import GroupCommit


class Numbers:
    """Numbers ascend across all namespaces and processes and are never reused."""

    def __init__(self, group_commit: GroupCommit) -> None:
        self._group_commit = group_commit
        self._next: int | None = None
        self._is_changed = False

    def take(self) -> int:
        """Return a number greater than all before; only inside a write."""
        number = self._next
        if number is None:
            number = self.upper_bound()
        self._next = number + 1
        if not self._is_changed:
            self._is_changed = True
            self._group_commit.unwritten.add(self)
        return number

    def upper_bound(self) -> int:
        """Return a number greater than all given out so far."""
        if self._next is None:
            (self._next,) = self._group_commit.connection.execute("SELECT next FROM numbers").fetchone()
            assert self._next is not None
        return self._next

    def flush(self) -> None:
        if self._is_changed:
            self._group_commit.connection.execute("UPDATE numbers SET next = ?", (self._next,))
            self._is_changed = False

    def forget_read(self) -> None:
        if not self._is_changed:
            self._next = None

    def roll_back(self) -> None:
        self._next = None
        self._is_changed = False
