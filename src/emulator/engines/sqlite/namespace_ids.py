"""The number of a namespace inside the file, and the numbers that everything new is given."""

from __future__ import annotations

from emulator.engines.base import Key
from emulator.engines.sqlite.group_commit import GroupCommit

KEY = "space = ? AND shelf = ? AND owner = ? AND name = ? AND holder = ? AND place = ?"
KEY_EVERYWHERE = "space = ? AND shelf = ? AND owner = ? AND name = ? AND holder = ?"
KEY_COLUMNS = "shelf, owner, name, place, holder"
"""In the order of `Key`."""


class NamespaceIds:
    """One namespace. Its numbers rise over all namespaces and processes and are never given twice."""

    def __init__(self, group_commit: GroupCommit, namespace: str) -> None:
        self._group_commit = group_commit
        self._namespace = namespace
        self._id: int | None = None
        self._next: int | None = None
        self._moved = False

    @property
    def id(self) -> int:
        if self._id is None:
            self._id = self._stored()
            assert self._id is not None
        return self._id

    def number(self) -> int:
        """A number larger than any before; only inside a write."""
        number = self.bound()
        self._next = number + 1
        self._moved = True
        return number

    def bound(self) -> int:
        """Larger than any number given so far."""
        if self._next is None:
            (self._next,) = self._group_commit.connection.execute("SELECT next FROM numbers").fetchone()
            assert self._next is not None
        return self._next

    def of(self, key: Key) -> tuple[int, str, str, str, str, str]:
        """What `KEY` asks for."""
        kind, owner, name, channel, user = key
        if channel is None:
            raise ValueError(f"this operation needs one channel: {key}")
        return self.id, kind, owner, name, user, channel

    def everywhere(self, key: Key) -> tuple[int, str, str, str, str]:
        """What `KEY_EVERYWHERE` asks for."""
        return self.id, key.kind, key.owner, key.name, key.user

    def settle(self) -> None:
        """Give the namespace its number, if it is new here."""
        if self._stored() is None:
            self._store(self.number())

    def renew(self) -> None:
        """Leave all behind by taking a new number; `purge` deletes what is left."""
        self._group_commit.connection.execute("INSERT INTO dead_spaces VALUES (?)", (self.id,))
        self._store(self.number())
        self._id = None

    def look(self) -> None:
        """Ask the database something that it can only answer if it works."""
        self._stored()

    def touch(self) -> None:
        """Write, and change nothing."""
        self._group_commit.connection.execute("UPDATE numbers SET next = next")

    def expired(self, key: Key, at: int) -> None:
        """Note an expiry whose thing is about to go in another way than by `purge`."""
        self._group_commit.connection.execute(
            f"INSERT INTO fallen (space, {KEY_COLUMNS}, at) VALUES (?, ?, ?, ?, ?, ?, ?)", (self.id, *key, at)
        )

    def flush(self) -> None:
        if self._moved:
            self._group_commit.connection.execute("UPDATE numbers SET next = ?", (self._next,))
            self._moved = False

    def forget(self) -> None:
        self._id = self._next = None
        self._moved = False

    def _stored(self) -> int | None:
        row = self._group_commit.connection.execute(
            "SELECT space FROM spaces WHERE namespace = ?", (self._namespace,)
        ).fetchone()
        return None if row is None else int(row[0])

    def _store(self, space: int) -> None:
        self._group_commit.connection.execute("INSERT OR REPLACE INTO spaces VALUES (?, ?)", (self._namespace, space))
