"""Group commit on one connection: all writes that are ready at the same time share one transaction."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Callable, Coroutine, Generator, Iterable, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any, ParamSpec, Protocol, TypeVar

from emulator.engines.engine import UPGRADES, Upgrades
from emulator.engines.sqlite.connection import CLOSED, PAUSES, connect, describe, is_busy
from emulator.engines.sqlite.corruption import Corruption, FileWatch, check_before_opening
from emulator.errors import EngineError

Params = ParamSpec("Params")
Result = TypeVar("Result")
Rows = dict[str, list[tuple[object, ...]]]
"""Rows to write, by statement."""

_BEGIN_WRITE = "BEGIN IMMEDIATE"
_READ_ATTEMPTS = 20
"""How often a read is retried after the group it joined was rolled back."""


class WriteCache(Protocol):
    """State of the database that is kept in memory, and written back before a commit."""

    def flush(self) -> None:
        """Write all unsaved changes; the transaction is about to be committed."""

    def forget_read(self) -> None:
        """Drop data that can be read again, because another connection changed the database. Unwritten data stays."""

    def roll_back(self) -> None:
        """Drop everything, unwritten data included: the transaction was rolled back, and its writers got an error."""


class Group:
    """The operations that share a transaction.

    Await it until the commit; raises `EngineError` if it was rolled back.
    """

    __slots__ = ("_loop", "failure", "is_open", "waiters")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self.is_open = True
        self.failure = ""
        """Why the transaction was rolled back."""
        self.waiters: list[asyncio.Future[None]] = []
        """One for each operation that waits, so that cancelling one leaves the others alone."""

    def __await__(self) -> Generator[Any, None, None]:
        if self.is_open:
            waiter = self._loop.create_future()
            self.waiters.append(waiter)
            yield from waiter
        elif self.failure:
            raise EngineError(self.failure)

    def end(self, failure: str = "") -> None:
        """Release those who wait: with an error, if the transaction was rolled back."""
        self.is_open, self.failure = False, failure
        for waiter in self.waiters:
            if waiter.done():
                continue
            if failure:
                waiter.set_exception(EngineError(failure))
            else:
                waiter.set_result(None)


class GroupCommit:
    """`write` and `read` call a plain function at once, and return its result once all that it read is committed.

    The first write begins a transaction. Writes that become ready in between join it, and then the event loop
    commits it. If a statement or the commit fails, the whole group is rolled back: its writers get `EngineError`, and
    its readers try again.
    """

    def __init__(self, path: str | None, *, awaits_disk: bool = False, upgrades: Upgrades = UPGRADES) -> None:
        self.path = path
        self._awaits_disk = awaits_disk
        self._upgrades = upgrades
        self.corruption = Corruption(path)
        self._files = FileWatch(path)
        self.unwritten: dict[WriteCache, None] = {}
        """The caches that may hold what is not written yet: each adds itself.

        A dict keeps the order of the first writes; a set would order them by address.
        """
        self._caches: dict[int, WriteCache] = {}
        """All caches, by `id`."""
        self.connection: sqlite3.Connection = CLOSED
        self._loop: asyncio.AbstractEventLoop
        self._group: Group | None = None
        """The operations that share the open transaction, if there is one."""
        self._gathered: Rows | None = None
        """During a commit, the rows of all caches."""
        self._version = 0
        self._retrying = 0
        """Reads that joined a failed group. Writes wait for them: on a full disk, one failed group follows another."""
        self._changes_of_others = 0
        """Rows that `write_rows` wrote."""
        self.commits = 0
        """How many groups have been committed."""
        self.is_failing = False
        """Whether the last write failed, for example because the disk is full."""

    @property
    def is_writing(self) -> bool:
        """Whether a group's transaction is open."""
        return self._group is not None

    async def open(self) -> None:
        self._loop = asyncio.get_running_loop()
        if self.path is not None:
            await asyncio.to_thread(check_before_opening, self.path)
        self.connection = await connect(self.path, upgrades=self._upgrades)
        if self._awaits_disk:
            self.connection.execute("PRAGMA synchronous = FULL")
        with self.corruption:
            self.connection.execute("SELECT next FROM numbers").fetchone()  # opens the log
        self._files.note_files()

    def close(self) -> None:
        if self.connection is CLOSED:
            return
        self.commit_now()
        self.forget_read()
        self._caches.clear()
        self.connection.close()
        self.connection = CLOSED
        self._files.close_handles()

    def write(
        self, work: Callable[Params, Result], *args: Params.args, **kwargs: Params.kwargs
    ) -> Coroutine[Any, Any, Result]:
        """Run `work` in the group's transaction; return after its commit. To be awaited at once.

        If `work` raises before it wrote anything, the exception reaches the caller and the group is unaffected.
        """
        run = self._run_in_new_group if self._group is None else self._run_in_group
        return run(work, *args, **kwargs)

    async def _run_in_new_group(
        self, work: Callable[Params, Result], *args: Params.args, **kwargs: Params.kwargs
    ) -> Result:
        await self._begin_group()
        return await self._run_in_group(work, *args, **kwargs)

    async def join(
        self, work: Callable[Params, Result], *args: Params.args, **kwargs: Params.kwargs
    ) -> tuple[Result, Group]:
        """Run `work` in the group's transaction; return its result at once, and the group, to await its commit."""
        if self._group is None:
            await self._begin_group()
        group = self._group
        assert group is not None
        return self._run(work, *args, **kwargs), group

    async def read(self, work: Callable[Params, Result], *args: Params.args, **kwargs: Params.kwargs) -> Result:
        """Run `work`, which only reads, and return its result once everything that it read is committed."""
        failure: EngineError | None = None
        try:
            for _ in range(_READ_ATTEMPTS):
                if self._group is None and self.path is None:
                    with self.corruption:
                        return work(*args, **kwargs)
                if self._group is None and await self._begin("BEGIN"):
                    with self.corruption:
                        try:
                            return work(*args, **kwargs)
                        finally:
                            if self.connection.in_transaction:
                                self.connection.execute("COMMIT")
                try:
                    return await self._run_in_group(work, *args, **kwargs)
                except EngineError as error:  # a write of the group failed; committed data is still readable
                    self._retrying += failure is None
                    failure = error
        finally:
            self._retrying -= failure is not None
        assert failure is not None
        raise failure

    async def peek(self, work: Callable[Params, Result], *args: Params.args, **kwargs: Params.kwargs) -> Result:
        """Run `work`, which only reads, and return its result at once. It may have read uncommitted writes."""
        if self._group is None:
            return await self.read(work, *args, **kwargs)
        with self.corruption:
            return work(*args, **kwargs)

    def check_caches(self) -> None:
        """Clear the caches if another connection has written. During a group, none can."""
        if self._group is None:
            with self.corruption:
                self._check_version()

    def check_files(self) -> bool:
        """Stop using the files if they were deleted or replaced; return whether they were."""
        loss = self._files.lost_file()
        if loss is not None:
            self.corruption.mark_lost(loss)
        return loss is not None

    def version(self) -> int:
        """Return SQLite's data version, which changes whenever another connection has written."""
        with self.corruption:
            (version,) = self.connection.execute("PRAGMA data_version").fetchone()
        return int(version)

    @asynccontextmanager
    async def snapshot(self) -> AsyncIterator[sqlite3.Connection]:
        """Open another connection to the file. While it is open, it sees the data committed before it was opened."""
        self.corruption.check()
        connection = await connect(self.path)
        try:
            with self.corruption:
                connection.execute("BEGIN")
                connection.execute("SELECT next FROM numbers").fetchone()  # a snapshot begins with its first read
                yield connection
        finally:
            connection.close()

    def write_rows(self, statement: str, rows: Sequence[tuple[object, ...]]) -> None:
        """Write rows that earlier operations of the group left in memory; they do not count for the one that runs."""
        before = self.connection.total_changes
        self.connection.executemany(statement, rows)
        self._changes_of_others += self.connection.total_changes - before

    def save(self, statement: str, rows: Iterable[tuple[object, ...]]) -> None:
        """Write rows of a cache, now or together with other caches in one commit, which costs less.

        Rows of different statements must not depend on each other.
        """
        if self._gathered is None:
            self.connection.executemany(statement, rows)
        elif statement in self._gathered:
            self._gathered[statement] += rows
        else:
            self._gathered[statement] = list(rows)

    def forget_read(self) -> None:
        """Make all caches read from the database again. Data that the group has accepted stays."""
        for cache in self._caches.values():
            cache.forget_read()

    async def wait_for_commit(self) -> None:
        """Wait until every write is committed."""
        if self._group is not None:
            with suppress(EngineError):
                await self._group

    def add_caches(self, caches: Iterable[WriteCache]) -> None:
        """Write these caches back before each commit, and tell them of rollbacks and of changes by others."""
        self._caches |= {id(cache): cache for cache in caches}

    def remove_caches(self, caches: Iterable[WriteCache]) -> None:
        """Commit the data of these caches, clear them, and release them."""
        self.commit_now()
        for cache in caches:
            cache.forget_read()
            self._caches.pop(id(cache), None)

    def commit_now(self) -> None:
        """Commit the open group, if there is one, without waiting for more writes to join it."""
        if self._group is not None:
            self._commit(self._group)

    def copy_from(self, connection: sqlite3.Connection) -> None:
        """Replace the whole database, in memory, with another connection's. No group may be open on either."""
        assert self.path is None
        assert self._group is None
        with self.corruption:
            connection.backup(self.connection)
        self.forget_read()

    async def _run_in_group(
        self, work: Callable[Params, Result], *args: Params.args, **kwargs: Params.kwargs
    ) -> Result:
        group = self._group
        assert group is not None
        try:
            result = self._run(work, *args, **kwargs)
        except Exception:
            if group.is_open:
                await group
            raise
        waiter = self._loop.create_future()  # as awaiting the group, without another coroutine for each vote
        group.waiters.append(waiter)
        await waiter
        return result

    def _run(self, work: Callable[Params, Result], *args: Params.args, **kwargs: Params.kwargs) -> Result:
        """Run `work`; roll the group back if a statement fails, or if `work` raises after it wrote something."""
        connection = self.connection
        changes = connection.total_changes - self._changes_of_others
        try:
            return work(*args, **kwargs)
        except sqlite3.Error as error:
            raise self._roll_back(error) from error
        except Exception as error:
            if connection.total_changes - self._changes_of_others != changes:
                self._roll_back(error)
            raise
        except BaseException as error:
            self._roll_back(error)
            raise

    async def _begin_group(self) -> None:
        if await self._begin(_BEGIN_WRITE):
            group = self._group = Group(self._loop)
            # Two passes of the event loop later, so that requests that arrive during these operations join the
            # commit: that raises throughput by about a tenth.
            self._loop.call_soon(self._loop.call_soon, self._commit, group)

    async def _begin(self, statement: str) -> bool:
        """Begin a transaction, without blocking the event loop. Return False if a group has begun in the meantime."""
        self.corruption.check()
        for pause in PAUSES:
            if self._group is not None:
                return False
            if self._retrying and statement == _BEGIN_WRITE:
                await asyncio.sleep(pause)
                continue
            try:
                self.connection.execute(statement)
                self._check_version()
            except sqlite3.Error as error:
                if self.connection.in_transaction:
                    self.connection.execute("ROLLBACK")
                if not is_busy(error):
                    self._note_failure(error)
                    raise EngineError(describe(error)) from error
            else:
                return True
            await asyncio.sleep(pause)
        raise EngineError(f"{self.path} is locked by another process")

    def _check_version(self) -> None:
        """Clear the caches if another connection has written."""
        if self.path is not None:
            (version,) = self.connection.execute("PRAGMA data_version").fetchone()
            if version != self._version:
                self._version = version
                self.forget_read()

    def _commit(self, group: Group) -> None:
        if group is not self._group:
            return  # rolled back, or committed by `close`
        if not self._files.is_in_place() and self.check_files():
            self._roll_back(sqlite3.OperationalError("the database file was deleted or replaced"))
            return
        try:
            while self.unwritten:
                self._flush()
            self.connection.execute("COMMIT")
        except BaseException as error:
            self._roll_back(error)
            if not isinstance(error, sqlite3.Error):
                raise
            return
        self._group = None
        self.is_failing = False
        self.commits += 1
        group.end()

    def _flush(self) -> None:
        caches, self.unwritten = self.unwritten, {}
        gathered: Rows = {}
        self._gathered = gathered
        try:
            for cache in caches:
                cache.flush()
        finally:
            self._gathered = None
        for statement, rows in gathered.items():
            self.connection.executemany(statement, rows)

    def _roll_back(self, error: BaseException) -> EngineError:
        group, self._group = self._group, None
        self._note_failure(error)
        self.unwritten.clear()
        for cache in self._caches.values():
            cache.roll_back()
        failure = f"nothing was written: {describe(error)}"
        try:
            if self.connection.in_transaction:  # SQLite rolls back by itself after some failures
                self.connection.execute("ROLLBACK")
        finally:
            if group is not None:
                group.end(failure)
        return EngineError(failure)

    def _note_failure(self, error: BaseException) -> None:
        self.is_failing = True
        self.corruption.note(error)
