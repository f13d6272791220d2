"""Data on SQLite: the engine of one namespace, and the medium of all. Each data type has its own module."""

from __future__ import annotations

import asyncio
from contextlib import AbstractContextManager, AsyncExitStack, nullcontext
from typing import Self

from emulator.core.errors import EngineError
from emulator.core.keys import Key
from emulator.storage.engine import Engine, Medium
from emulator.storage.shapes import Relay
from emulator.storage.sqlite.ballots import SqliteBallots
from emulator.storage.sqlite.catalog import SqliteCatalog
from emulator.storage.sqlite.connection import check_space, permission_warnings
from emulator.storage.sqlite.documents import SqliteDocuments
from emulator.storage.sqlite.dump import SqliteDump
from emulator.storage.sqlite.group_commit import GroupCommit
from emulator.storage.sqlite.load import SqliteLoad
from emulator.storage.sqlite.locks import service_lock, temporary_file
from emulator.storage.sqlite.logs import SqliteLogs
from emulator.storage.sqlite.namespace import HIDDEN, Namespace, Tables, namespace_id, read_operation, write_operation
from emulator.storage.sqlite.pools import SqlitePools, SqliteRosters
from emulator.storage.sqlite.purge import SqlitePurge
from emulator.storage.sqlite.tables import FORMAT, THING_TABLES


class SqliteRelay(Tables, Relay):
    """Passes each message to the listeners of its namespace: no other process has any."""

    is_local = True

    async def publish(self, topic: Key, message: bytes) -> None:
        self._namespace.check_open()
        for deliver in self._listeners:
            deliver(topic, message)


_FIND_HIDDEN = f"""
    SELECT namespace FROM spaces
    WHERE substr(namespace, 1, length(?1)) = ?1 AND instr(namespace, '{HIDDEN}')
"""


class SqliteEngine(SqliteDump, SqliteLoad, SqlitePurge, Engine):
    """One namespace of a file."""

    name = "sqlite"
    can_copy = True
    format = FORMAT

    def __init__(self, medium: SqliteMedium, namespace: str) -> None:
        super().__init__(Namespace(medium.group_commit, namespace))
        self._medium, self._name = medium, namespace
        self._aside = f"{namespace}{HIDDEN}aside"
        """The name under which `set_aside` keeps the content."""
        self._stack = AsyncExitStack()
        self.location = medium.path or "memory"
        self.survives_restart = medium.path is not None
        self.documents = SqliteDocuments(self._namespace)
        self.ballots = SqliteBallots(self._namespace)
        self.logs = SqliteLogs(self._namespace)
        self.pools = SqlitePools(self._namespace)
        self.rosters = SqliteRosters(self._namespace)
        self.catalog = SqliteCatalog(self._namespace)
        self.relay = SqliteRelay(self._namespace)

    def exclusive_lock(self) -> AbstractContextManager[None]:
        return service_lock(self._medium.path) if self._medium.path else nullcontext()

    async def __aenter__(self) -> Self:
        caches, path = self.group_commit.caches, self._medium.path
        if self._name in caches:  # each engine has its own
            raise EngineError(f"the namespace {self._name!r} is open already")
        async with AsyncExitStack() as stack:
            caches[self._name] = self._namespace.clear
            stack.callback(caches.pop, self._name)
            await stack.enter_async_context(self._medium)
            self._namespace.is_open = True
            stack.callback(self._leave_medium)
            try:
                await self._register()
            except EngineError as error:
                raise EngineError(f"cannot open {path}: {error}") from error
            self.warnings = permission_warnings(path) if path else ()
            self._stack = stack.pop_all()
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        await self._stack.aclose()

    def _leave_medium(self) -> None:
        """Complete pending operations, and close the namespace. Later operations fail."""
        self.group_commit.commit_now()
        self._namespace.clear()
        self._namespace.is_open = False

    async def check(self) -> None:
        self.group_commit.watch_files()
        self.group_commit.check_files()
        check_space(self.group_commit.path)
        # On a full disk, reads still work.
        if self.group_commit.is_failing:
            await self.group_commit.write(self._execute, "UPDATE numbers SET next = next")
        else:
            await self.group_commit.read(self._namespace.find_id, self._name)

    @write_operation
    def _register(self) -> None:
        """Give the namespace an id if it is new in this database.

        Hidden data of it, and of those whose names begin with its name and `/`, is removed: a killed process left it.
        """
        if not self._namespace.find_id(self._name):
            self._namespace.assign_id(self._name)
        for (name,) in self._execute(_FIND_HIDDEN, f"{self._name}/").fetchall():
            self._namespace.remove(name)

    @write_operation
    def reset(self) -> None:
        """Give the namespace a new id, so that it is empty. `tidy` deletes the rows of the old id."""
        self.group_commit.flush_caches()
        self._namespace.assign_id(self._name)

    @write_operation
    def set_aside(self) -> None:
        """Give the namespace a new id, so that it is empty, and keep the old one for `take_back`."""
        self.group_commit.flush_caches()
        self._namespace.rename(self._name, self._aside)
        self._namespace.assign_id(self._name)

    @write_operation
    def take_back(self) -> None:
        """Give the namespace the id that `set_aside` kept. Raises `EngineError` if nothing is set aside."""
        if not self._namespace.find_id(self._aside):
            raise EngineError("no data is kept for an undo")
        self.group_commit.flush_caches()
        self._namespace.rename(self._aside, self._name)

    @write_operation
    def drop_aside(self) -> None:
        """Remove what `set_aside` kept. `tidy` deletes its rows."""
        self._namespace.remove(self._aside)

    async def size(self) -> int:
        return await self._medium.size(self._name)

    @write_operation
    def drop(self) -> None:
        """Remove the namespace. `tidy` deletes its rows."""
        self.group_commit.flush_caches()
        self._namespace.remove(self._name)
        self._namespace.remove(self._aside)


_LIST_NAMES = f"SELECT namespace FROM spaces WHERE instr(namespace, '{HIDDEN}') = 0 ORDER BY namespace"
_COUNT_TABLES = [f"(SELECT count(*) FROM {table.name} WHERE space = :space)" for table in THING_TABLES]
# A list that a pool uses counts as the pool.
_COUNT_RECORDS = f"SELECT {' + '.join(_COUNT_TABLES)} - (SELECT count(list) FROM pools WHERE space = :space)"


class SqliteMedium(Medium):
    """The namespaces of a file, which share a connection and its commits. The file is open while this or an engine is.

    With `path` `None` it is a temporary file, which ends when it closes. With `awaits_disk`, a commit waits for the
    disk, so that not even a power cut loses data. No other process may write to the file: see `locks.py`.
    """

    def __init__(self, path: str | None, *, awaits_disk: bool = False) -> None:
        self.path = path
        self._synchronous = "OFF" if path is None else "FULL" if awaits_disk else "NORMAL"
        self.group_commit = GroupCommit()
        self._users = 0
        self._changing = asyncio.Lock()
        self._stack = AsyncExitStack()

    def engine(self, namespace: str) -> SqliteEngine:
        return SqliteEngine(self, namespace)

    @read_operation
    def namespaces(self) -> list[str]:
        return [name for (name,) in self.group_commit.connection.execute(_LIST_NAMES)]

    @read_operation
    def size(self, namespace: str) -> int:
        connection = self.group_commit.connection
        (size,) = connection.execute(_COUNT_RECORDS, {"space": namespace_id(connection, namespace)}).fetchone()
        return int(size)

    async def __aenter__(self) -> Self:
        async with self._changing:
            if not self._users:
                async with AsyncExitStack() as stack:
                    path = self.path or stack.enter_context(temporary_file())
                    await stack.enter_async_context(self.group_commit.open_file(path, self._synchronous))
                    self._stack = stack.pop_all()
            self._users += 1
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        async with self._changing:
            self._users -= 1
            if not self._users:
                await self._stack.aclose()
