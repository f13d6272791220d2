"""Writes records (`engines/records.py`) into a namespace: all of them become visible in one step.

To replace everything, the records are written under the id of a hidden namespace in short transactions, while work on
the other data goes on. One more transaction gives that id to the namespace. If the process dies before, the next
opening by a service that is alone removes the hidden namespace.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import suppress

from emulator.engines.record_checks import checked
from emulator.engines.records import Record
from emulator.engines.sqlite.group_commit import GroupCommit
from emulator.engines.sqlite.namespace_ids import NamespaceIds, Tables
from emulator.engines.sqlite.records.clearing import clear
from emulator.engines.sqlite.records.rows import RecordRows
from emulator.errors import EngineError

STEP = 250
"""Records that are written in one group commit."""
_COPIED = 100
"""Steps after which the write-ahead log is copied. Else it grows until a commit must copy all of it."""


class Load(Tables):
    def __init__(
        self,
        group_commit: GroupCommit,
        namespace: NamespaceIds,
        forget_namespace: Callable[[], None],
        copy_log: Callable[[], Awaitable[None]],
    ) -> None:
        super().__init__(group_commit, namespace)
        self._copy_log = copy_log
        self._forget_namespace = forget_namespace
        """Writes what the group has accepted for the namespace, and drops every cache of its data."""

    async def __call__(self, pages: AsyncIterator[Sequence[Record]], *, replace: bool) -> None:
        if replace:
            await self._replace(pages)
        else:
            records = [record async for page in checked(pages) for record in page]
            await self._group_commit.write(self._merge, records)

    async def _replace(self, pages: AsyncIterator[Sequence[Record]]) -> None:
        space = await self._group_commit.write(self._namespace.begin_hidden)
        rows = RecordRows(self._group_commit, self._namespace, space)
        steps = 0
        try:
            async for page in checked(pages):
                for start in range(0, len(page), STEP):
                    await self._group_commit.write(rows.write, page[start : start + STEP])
                    steps += 1
                    if steps % _COPIED == 0:
                        await self._copy_log()
            while await self._group_commit.write(rows.finish, STEP):
                pass
            await self._group_commit.write(self._switch, space)
        except BaseException:
            with suppress(EngineError):  # the next opening alone removes it too
                await self._group_commit.write(self._namespace.drop_hidden, space)
            raise

    def _switch(self, space: int) -> None:
        self._forget_namespace()
        self._namespace.show_hidden(space)

    def _merge(self, records: Sequence[Record]) -> None:
        self._forget_namespace()
        clear(self._group_commit.connection, self._namespace.id, records)
        rows = RecordRows(self._group_commit, self._namespace, self._namespace.id)
        rows.write(records)
        while rows.finish(STEP):
            pass
