"""Data on SQLite: the engine of one namespace, and the medium of all. Each data type has its own module."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, AsyncExitStack, nullcontext
from typing import Self

from emulator.core.errors import EngineError
from emulator.core.keys import Key
from emulator.storage.pools import Pools, Rosters
from emulator.storage.shapes import Ballots, Catalog, Documents, Logs, Relay
from emulator.storage.sqlite.ballot_cache import BallotCache
from emulator.storage.sqlite.ballots import SqliteBallots
from emulator.storage.sqlite.catalog import SqliteCatalog
from emulator.storage.sqlite.checkpoints import Checkpoints
from emulator.storage.sqlite.connection import check_space, permission_warnings
from emulator.storage.sqlite.documents import SqliteDocuments
from emulator.storage.sqlite.dump import Dump
from emulator.storage.sqlite.files.locks import service_lock
from emulator.storage.sqlite.files.temporary import temporary_file
from emulator.storage.sqlite.group_commit import GroupCommit
from emulator.storage.sqlite.load import Load
from emulator.storage.sqlite.logs import SqliteLogs
from emulator.storage.sqlite.namespace import HIDDEN, Namespace, Numbers, Tables
from emulator.storage.sqlite.pools import SqlitePools
from emulator.storage.sqlite.purge import Purge
from emulator.storage.sqlite.rosters import SqliteRosters
from emulator.storage.sqlite.schema import VERSION, empty_database

_Deliver = Callable[[Key, bytes], None]


class SqliteRelay(Tables):
    """Passes each message to the listeners of its namespace: no other process has any."""

    is_local = True
    _listeners: tuple[_Deliver, ...] = ()

    def listen(self, deliver: _Deliver) -> None:
        self._listeners += (deliver,)

    def ignore(self, deliver: _Deliver) -> None:
        self._listeners = tuple(each for each in self._listeners if each != deliver)

    async def publish(self, topic: Key, message: bytes) -> None:
        self._namespace.check_open()
        for deliver in self._listeners:
            deliver(topic, message)


class SqliteEngine:
    """One namespace of a file."""

    name = "sqlite"
    can_copy = True
    format = VERSION

    def __init__(self, medium: SqliteMedium, namespace: str) -> None:
        self._medium, self._name = medium, namespace
        self._path = path = medium.path
        self._stack = AsyncExitStack()
        self.warnings: Sequence[str] = ()
        self.location = path or "memory"
        self.survives_restart = path is not None
        self._group_commit = medium.group_commit
        self._namespace = Namespace(self._group_commit, medium.numbers, namespace)
        ballot_cache = BallotCache(self._namespace)
        documents = SqliteDocuments(self._namespace)
        self.documents: Documents = documents
        self.ballots: Ballots = SqliteBallots(self._namespace, ballot_cache)
        self.logs: Logs = SqliteLogs(self._namespace)
        self.pools: Pools = SqlitePools(self._namespace)
        self.rosters: Rosters = SqliteRosters(self._namespace)
        self.catalog: Catalog = SqliteCatalog(self._namespace)
        self.relay: Relay = SqliteRelay(self._namespace)
        self._caches = (ballot_cache.clear, documents.clear, self._namespace.clear)
        self.purge = Purge(self._namespace)
        self.tidy = self.purge.tidy
        self.dump = Dump(self._namespace)
        self.load = Load(self._namespace, medium.checkpoints.copy_log_now)

    def exclusive_lock(self) -> AbstractContextManager[None]:
        return service_lock(self._path) if self._path else nullcontext()

    async def __aenter__(self) -> Self:
        if self._name in self._medium.in_use:  # each engine has its own caches
            raise EngineError(f"the namespace {self._name!r} is open already")
        async with AsyncExitStack() as stack:
            self._medium.in_use.add(self._name)
            stack.callback(self._medium.in_use.discard, self._name)
            await stack.enter_async_context(self._medium)
            stack.callback(self._leave_medium)
            self._namespace.is_open = True
            self._group_commit.add_caches(self._caches)
            try:
                await self._group_commit.write(self._namespace.register)
            except EngineError as error:
                raise EngineError(f"cannot open {self._path}: {error}") from error
            self.warnings = permission_warnings(self._path) if self._path else ()
            self._stack = stack.pop_all()
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        await self._stack.aclose()

    def _leave_medium(self) -> None:
        """Complete pending operations, and close the namespace. Later operations fail."""
        self._group_commit.remove_caches(self._caches)
        self._namespace.is_open = False

    async def check(self) -> None:
        self._group_commit.watch_files()
        self._group_commit.check_files()
        check_space(self._group_commit.path)
        # On a full disk, reads still work.
        if self._group_commit.is_failing:
            await self._group_commit.write(self._namespace.probe_write)
        else:
            await self._group_commit.read(self._namespace.probe_read)

    async def time(self) -> int | None:
        return None  # this machine keeps the data

    async def reset(self) -> None:
        await self._group_commit.write(self._namespace.reset)

    async def set_aside(self) -> None:
        await self._group_commit.write(self._namespace.set_aside)

    async def take_back(self) -> None:
        await self._group_commit.write(self._namespace.take_back)

    async def drop_aside(self) -> None:
        await self._group_commit.write(self._namespace.drop_aside)

    async def size(self) -> int:
        return await self._group_commit.read(self._namespace.size)

    async def drop(self) -> None:
        await self._group_commit.write(self._namespace.drop)


_NAMES = f"SELECT namespace FROM spaces WHERE instr(namespace, '{HIDDEN}') = 0 ORDER BY namespace"


class SqliteMedium:
    """The namespaces of a file, which share a connection and its commits. The file is open while this or an engine is.

    With `path` `None` it is a temporary file, which ends when it closes. With `awaits_disk`, a commit waits for the
    disk, so that not even a power cut loses data. No other process may write to the file: see `files/locks.py`.
    """

    def __init__(self, path: str | None, *, awaits_disk: bool = False) -> None:
        self.path = path
        self._synchronous = "OFF" if path is None else "FULL" if awaits_disk else "NORMAL"
        self.group_commit = GroupCommit()
        self.numbers = Numbers(self.group_commit)
        self.checkpoints = Checkpoints(self.group_commit)
        self.in_use: set[str] = set()
        """The namespaces that are open."""
        self._users = 0
        self._changing = asyncio.Lock()
        self._stack = AsyncExitStack()

    def engine(self, namespace: str) -> SqliteEngine:
        return SqliteEngine(self, namespace)

    async def namespaces(self) -> list[str]:
        return await self.group_commit.read(self._names)

    async def size(self, namespace: str) -> int:
        return await self.group_commit.read(Namespace(self.group_commit, self.numbers, namespace).size)

    async def __aenter__(self) -> Self:
        async with self._changing:
            if not self._users:
                await self._open()
            self._users += 1
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        async with self._changing:
            self._users -= 1
            if not self._users:
                await self._stack.aclose()

    async def _open(self) -> None:
        async with AsyncExitStack() as stack:
            path = self.path or stack.enter_context(temporary_file(empty_database()))
            await self.group_commit.open(path, self._synchronous)
            stack.callback(self.group_commit.close)
            await stack.enter_async_context(self.checkpoints.run(self._synchronous))
            self.group_commit.add_caches([self.numbers.clear])
            self._stack = stack.pop_all()

    def _names(self) -> list[str]:
        return [name for (name,) in self.group_commit.connection.execute(_NAMES)]
