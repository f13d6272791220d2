"""Data on SQLite: in memory, where each namespace has a database of its own, or in one file for all."""

from __future__ import annotations

from contextlib import AsyncExitStack
from typing import Self

from emulator.engines.sqlite import SqliteEngine
from emulator.engines.sqlite.database import Database
from emulator.engines.sqlite.namespace_ids import HIDDEN, NamespaceIds, size_of
from emulator.engines.upgrades import UPGRADES, Upgrades

_NAMES = f"SELECT namespace FROM spaces WHERE instr(namespace, '{HIDDEN}') = 0 ORDER BY namespace"


class SqliteMedium:
    """`path`, `awaits_disk` and `is_alone` are those of `Database`."""

    def __init__(
        self, path: str | None, *, awaits_disk: bool = False, is_alone: bool = False, upgrades: Upgrades = UPGRADES
    ) -> None:
        self._path, self._awaits_disk, self._is_alone, self._upgrades = path, awaits_disk, is_alone, upgrades
        self._file = None if path is None else self._database()
        self._stack = AsyncExitStack()

    def engine(self, namespace: str) -> SqliteEngine:
        return SqliteEngine(self._file or self._database(), namespace)

    async def namespaces(self) -> list[str]:
        if self._file is None:
            return []
        return await self._file.group_commit.read(self._names, self._file)

    async def size(self, namespace: str) -> int:
        if self._file is None:
            return 0
        return await self._file.group_commit.read(self._size, self._file, namespace)

    async def __aenter__(self) -> Self:
        if self._file is not None:
            await self._stack.enter_async_context(self._file.opened())
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        await self._stack.aclose()

    def _database(self) -> Database:
        return Database(self._path, awaits_disk=self._awaits_disk, is_alone=self._is_alone, upgrades=self._upgrades)

    def _names(self, file: Database) -> list[str]:
        return [name for (name,) in file.group_commit.connection.execute(_NAMES)]

    def _size(self, file: Database, namespace: str) -> int:
        connection = file.group_commit.connection
        return size_of(connection, NamespaceIds(file.group_commit, file.numbers, namespace).stored_in(connection))
