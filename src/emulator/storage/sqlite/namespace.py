"""One namespace of a database, and the base of the classes that use its tables."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Coroutine
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

from emulator.core.errors import EngineError
from emulator.core.keys import Key
from emulator.storage.merging import Row
from emulator.storage.sqlite.group_commit import GroupCommit
from emulator.storage.sqlite.tables import BY_KEY, BY_KEY_ALL_CHANNELS, SPACES, Table

Params = ParamSpec("Params")
Result = TypeVar("Result")
Work = Callable[Concatenate[Any, Params], Result]
Operation = Callable[Concatenate[Any, Params], Coroutine[Any, Any, Result]]
HIDDEN = "//"
"""Only names of hidden namespaces contain this. The part before it names the namespace that owns the hidden one."""
NO_ID = 0
"""The id of a namespace that is not stored: numbers begin at 1."""


def namespace_id(connection: sqlite3.Connection, name: str) -> int:
    """Return the id of the namespace with this name in the data that this connection sees, or `NO_ID`."""
    row = connection.execute("SELECT space FROM spaces WHERE namespace = ?", (name,)).fetchone()
    return NO_ID if row is None else int(row[0])


class Namespace:
    """One namespace. While it is closed, operations on it raise `EngineError`."""

    def __init__(self, group_commit: GroupCommit, name: str) -> None:
        self.group_commit = group_commit
        self.name = name
        self.is_open = False
        self.caches: list[Callable[[], None]] = []
        """What empties each cache of its data."""
        self._id = NO_ID

    @property
    def id(self) -> int:
        if not self._id:
            self._id = self.find_id(self.name)
            if not self._id and self.group_commit.group:  # it was dropped, and is about to be closed
                self._id = self.assign_id(self.name)
        return self._id

    def check_open(self) -> None:
        """Raise `EngineError` if the namespace is closed."""
        if not self.is_open:
            raise EngineError("the engine is closed")

    def key_params(self, key: Key) -> tuple[object, ...]:
        """Return the parameters of `BY_KEY`."""
        if key.channel is None:
            raise ValueError(f"this operation needs one channel: {key}")
        return self.id, *key

    def key_condition(self, key: Key) -> tuple[str, tuple[object, ...]]:
        """Return the condition for the rows of a key, in all channels if it names none, and its parameters."""
        if key.channel is None:
            return BY_KEY_ALL_CHANNELS, (self.id, key.kind, key.owner, key.name, key.user)
        return BY_KEY, self.key_params(key)

    def clear(self) -> None:
        """Forget what was read."""
        self._id = NO_ID
        for clear in self.caches:
            clear()

    def find_id(self, name: str) -> int:
        """Return the id under a name, or `NO_ID`: of this namespace or of a hidden one."""
        self.check_open()
        return namespace_id(self.group_commit.connection, name)

    def assign_id(self, name: str) -> int:
        """Give a name a new id, which is returned, so that it is empty. `tidy` deletes the rows of the old id."""
        self.remove(name)
        id = self.group_commit.next_number()
        self.group_commit.connection.execute(SPACES.insert, (name, id))
        return id

    def rename(self, name: str, new: str) -> None:
        """Give the id under a name to another name, in place of the one that it has."""
        self.remove(new)
        self.group_commit.connection.execute("UPDATE spaces SET namespace = ? WHERE namespace = ?", (new, name))

    def remove(self, name: str) -> None:
        """Remove a name. `tidy` deletes its rows. An absent name is not an error."""
        execute = self.group_commit.connection.execute
        execute(f"INSERT INTO dead SELECT '{SPACES.name}', space FROM spaces WHERE namespace = ?", (name,))
        execute("DELETE FROM spaces WHERE namespace = ?", (name,))


def write_operation(work: Work[Params, Result]) -> Operation[Params, Result]:
    """Make a method an operation that runs in the transaction of a group, and returns after its commit."""

    @wraps(work)
    def operation(self: Tables, /, *args: Params.args, **kwargs: Params.kwargs) -> Coroutine[Any, Any, Result]:
        return self.group_commit.write(work, self, *args, **kwargs)

    return operation


def read_operation(work: Work[Params, Result]) -> Operation[Params, Result]:
    """Make a method, which only reads, an operation that returns once all that it read is committed."""

    @wraps(work)
    def operation(self: Tables, /, *args: Params.args, **kwargs: Params.kwargs) -> Coroutine[Any, Any, Result]:
        return self.group_commit.read(work, self, *args, **kwargs)

    return operation


class Tables:
    """Base of the classes that read and write the tables of one namespace."""

    def __init__(self, namespace: Namespace) -> None:
        self.group_commit = namespace.group_commit
        self._namespace = namespace

    def _execute(self, statement: str, *params: object) -> sqlite3.Cursor:
        return self.group_commit.connection.execute(statement, params)

    def _find_row(self, statement: str, key: Key, *more: object) -> Any:
        """Return the first row for a key, or `None`. The statement begins with the parameters of `BY_KEY`."""
        return self._execute(statement, *self._namespace.key_params(key), *more).fetchone()

    def _add_row(self, table: Table, key: Key, *values: object) -> int:
        """Add the row of a thing under a new id, which is returned."""
        id = self.group_commit.next_number()
        self._execute(table.insert, id, *self._namespace.key_params(key), *values)
        return id

    def _remove_row(self, table: Table, id: int) -> None:
        """Remove a row, and list it for `tidy` if something belongs to it."""
        self._execute(f"DELETE FROM {table.name} WHERE id = ?", id)
        if table.contents:
            self._execute("INSERT OR IGNORE INTO dead VALUES (?, ?)", table.name, id)

    @read_operation
    def _select_rows(self, statement: str, /, **params: object) -> list[Row]:
        """Return the rows that a statement selects, in which `:space` is the id of the namespace."""
        self.group_commit.flush()
        return self.group_commit.connection.execute(statement, {"space": self._namespace.id, **params}).fetchall()
