"""One namespace of a database, the base of the classes that use its tables, and the numbers that identify new rows."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from typing import Any

from emulator.core.errors import EngineError
from emulator.core.keys import Key
from emulator.storage.sqlite.group_commit import GroupCommit
from emulator.storage.sqlite.tables import BY_KEY, BY_KEY_ALL_CHANNELS, SPACES, THINGS

_FIND = "SELECT space FROM spaces WHERE namespace = ?"
HIDDEN = "//"
"""Only names of hidden namespaces contain this. The part before it names the namespace that owns the hidden one."""
_HIDDEN_UNDER = f"""
    SELECT namespace FROM spaces
    WHERE substr(namespace, 1, length(:start)) = :start AND instr(namespace, '{HIDDEN}')
"""
_NO_ID = 0
"""The id of a namespace that is not stored: numbers begin at 1."""


class Numbers:
    """Numbers ascend across all namespaces and are never reused."""

    def __init__(self, group_commit: GroupCommit) -> None:
        self._group_commit = group_commit
        self._next: int | None = None
        self._is_changed = False

    def next_number(self) -> int:
        """Return a number greater than all before; only inside a write."""
        number = self.upper_bound()
        self._next = number + 1
        if not self._is_changed:
            self._is_changed = True
            self._group_commit.unwritten[self.flush] = None
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

    def clear(self) -> None:
        self._next = None
        self._is_changed = False


class Namespace:
    """One namespace. While it is closed, operations on it raise `EngineError`."""

    def __init__(self, group_commit: GroupCommit, numbers: Numbers, namespace: str) -> None:
        self.group_commit = group_commit
        self.next_number: Callable[[], int] = numbers.next_number
        """Returns a number greater than all before; only inside a write."""
        self.upper_bound: Callable[[], int] = numbers.upper_bound
        """Returns a number greater than all given out so far."""
        self.is_open = False
        self._namespace = namespace
        self._hidden = f"{namespace}{HIDDEN}loading"
        """The name under which a load writes."""
        self._aside = f"{namespace}{HIDDEN}aside"
        """The name under which `set_aside` keeps the content."""
        self._id: int | None = None

    @property
    def id(self) -> int:
        if self._id is None:
            stored = self._stored()
            if not stored:  # it was dropped, and is about to be closed
                if not self.group_commit.is_writing:
                    return _NO_ID
                self._store(stored := self.next_number())
            self._id = stored
        return self._id

    def check_open(self) -> None:
        """Raise `EngineError` if the namespace is closed."""
        if not self.is_open:
            raise EngineError("the engine is closed")

    def params(self, key: Key) -> tuple[object, ...]:
        """Return the parameters of `BY_KEY`."""
        if key.channel is None:
            raise ValueError(f"this operation needs one channel: {key}")
        return self.id, *key

    def params_all_channels(self, key: Key) -> tuple[object, ...]:
        """Return the parameters of `BY_KEY_ALL_CHANNELS`."""
        return self.id, key.kind, key.owner, key.name, key.user

    def where(self, key: Key) -> tuple[str, tuple[object, ...]]:
        """Return the condition for the rows of a key, in all channels if it names none, and its parameters."""
        if key.channel is None:
            return BY_KEY_ALL_CHANNELS, self.params_all_channels(key)
        return BY_KEY, self.params(key)

    def register(self) -> None:
        """Give the namespace an id if it is new in this database.

        Hidden data of it, and of those whose names begin with its name and `/`, is removed: a killed process left it.
        """
        if not self._stored():
            self._store(self.next_number())
        rows = self.group_commit.connection.execute(_HIDDEN_UNDER, {"start": f"{self._namespace}/"}).fetchall()
        for (name,) in rows:
            self._remove(name)

    def reset(self) -> None:
        """Give the namespace a new id, so that it is empty. `tidy` deletes the rows of the old id."""
        self.group_commit.forget_read()
        self._remove(self._namespace)
        self._store(self.next_number())

    def set_aside(self) -> None:
        """Give the namespace a new id, so that it is empty, and keep the old one for `take_back`."""
        self.group_commit.forget_read()
        self._rename(self._namespace, self._aside)
        self._store(self.next_number())

    def take_back(self) -> None:
        """Give the namespace the id that `set_aside` kept. Raises `EngineError` if nothing is set aside."""
        if not self._stored(self._aside):
            raise EngineError("nothing is set aside")
        self.group_commit.forget_read()
        self._rename(self._aside, self._namespace)

    def drop_aside(self) -> None:
        """Remove what `set_aside` kept. `tidy` deletes its rows."""
        self._remove(self._aside)

    def drop(self) -> None:
        """Remove the namespace. `tidy` deletes its rows."""
        self.group_commit.forget_read()
        self._remove(self._namespace)
        self._remove(self._aside)

    def begin_hidden(self) -> int:
        """Return a new id for rows that stay hidden until `show_hidden`."""
        self._remove(self._hidden)
        self._store(id := self.next_number(), self._hidden)
        return id

    def show_hidden(self, id: int) -> None:
        """Give the namespace the id that `begin_hidden` returned, instead of its own. `tidy` deletes the old rows.

        Raises `EngineError` if another load of the namespace has removed what `begin_hidden` began.
        """
        if self._stored(self._hidden) != id:  # now: an error after the first row would roll back the writes of others
            raise EngineError("another load of the same namespace began meanwhile; nothing was replaced")
        self.group_commit.forget_read()
        self._rename(self._hidden, self._namespace)

    def drop_hidden(self, id: int) -> None:
        """Remove the data written under the id that `begin_hidden` returned."""
        if self._stored(self._hidden) == id:
            self._remove(self._hidden)

    def size(self) -> int:
        """Return the number of records of all types; the namespace need not be open."""
        connection = self.group_commit.connection
        counts = [f"(SELECT count(*) FROM {table.name} WHERE space = :space)" for table in THINGS]
        in_use = "(SELECT count(list) FROM pools WHERE space = :space)"  # a list that a pool uses counts as the pool
        params = {"space": self.stored_in(connection)}
        return int(connection.execute(f"SELECT {' + '.join(counts)} - {in_use}", params).fetchone()[0])

    def stored_in(self, connection: sqlite3.Connection, name: str | None = None) -> int:
        """Return the id of the namespace, or of a hidden one with this name, in the data that this connection sees."""
        row = connection.execute(_FIND, (name or self._namespace,)).fetchone()
        return _NO_ID if row is None else int(row[0])

    def probe_read(self) -> None:
        self._stored()

    def probe_write(self) -> None:
        """Write to the database without changing anything."""
        self.check_open()
        self.group_commit.connection.execute("UPDATE numbers SET next = next")

    def clear(self) -> None:
        self._id = None

    def _stored(self, name: str | None = None) -> int:
        self.check_open()
        return self.stored_in(self.group_commit.connection, name)

    def _store(self, id: int, name: str | None = None) -> None:
        row = (name or self._namespace, id)
        self.group_commit.connection.execute("INSERT INTO spaces VALUES (?, ?)", row)

    def _rename(self, name: str, new: str) -> None:
        """Give a namespace another name, in place of the one that has it."""
        self._remove(new)
        self.group_commit.connection.execute("UPDATE spaces SET namespace = ? WHERE namespace = ?", (new, name))

    def _remove(self, name: str) -> None:
        """Remove a namespace. An absent namespace is not an error."""
        execute = self.group_commit.connection.execute
        execute(f"INSERT INTO dead SELECT '{SPACES.name}', space FROM spaces WHERE namespace = ?", (name,))
        execute("DELETE FROM spaces WHERE namespace = ?", (name,))


class Tables:
    """Base of the classes that read and write the tables of one namespace."""

    def __init__(self, namespace: Namespace) -> None:
        self._group_commit = namespace.group_commit
        self._namespace = namespace

    async def _select(self, statement: str, **params: object) -> list[tuple[Any, ...]]:
        """Return the rows that a statement selects, in which `:space` is the id of the namespace."""

        def select() -> list[tuple[Any, ...]]:
            self._group_commit.flush()
            return self._group_commit.connection.execute(statement, {"space": self._namespace.id, **params}).fetchall()

        return await self._group_commit.read(select)
