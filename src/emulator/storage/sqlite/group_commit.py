"""Group commit on one connection: all writes that are ready at the same time share one transaction."""

from __future__ import annotations

import asyncio
import logging
import os
import sqlite3
from collections.abc import AsyncIterator, Callable, Generator, Mapping
from contextlib import asynccontextmanager, closing, suppress
from itertools import islice
from typing import Any, ParamSpec, TypeVar

from emulator.core.errors import EngineError
from emulator.storage.sqlite.connection import (
    NO_CONNECTION,
    RETRY_PAUSES,
    check_writable,
    connect,
    describe_error,
    engine_errors,
    file_identities,
    find_lost_file,
    is_busy,
    restore_hint,
    run_in_thread,
)

Params = ParamSpec("Params")
Result = TypeVar("Result")
Item = TypeVar("Item")
SNAPSHOT_PAGE = 100
"""Items between two returns to the event loop."""
_SET_CACHE_SIZE = "PRAGMA cache_size = -4096"
"""4 MiB: each page of the file is read once, so a larger cache would only be memory."""
WATCH_INTERVAL = 0.25
"""Seconds between two looks for new commits, and whether the file is in place."""
_AUTOCHECKPOINT = 400_000
"""Pages in the log at which SQLite copies the rest of it during a commit, so that it starts over."""
_log = logging.getLogger("emulator.engines")


class CommitGroup:
    """The operations that share a transaction.

    Await it until the commit; raises `EngineError` if it was rolled back.
    """

    def __init__(self) -> None:
        self.is_open = True
        self._failure = ""
        """Why the transaction was rolled back."""
        self._waiters: list[asyncio.Future[None]] = []
        """One for each operation that waits, so that cancelling one leaves the others alone."""

    def __await__(self) -> Generator[Any, None, None]:
        if self.is_open:
            waiter = asyncio.get_running_loop().create_future()
            self._waiters.append(waiter)
            yield from waiter
        if self._failure:
            raise EngineError(self._failure)

    def release(self, failure: str = "") -> None:
        """Release those who wait: with an error, if the transaction was rolled back."""
        self.is_open, self._failure = False, failure
        for waiter in self._waiters:
            if not waiter.done():
                waiter.set_result(None)


class GroupCommit:
    """`write` and `read` call a plain function at once, and return its result once all that it read is committed.

    The first write begins a transaction. Writes that become ready in between join it, and then the event loop
    commits it. If a statement or the commit fails, the whole group is rolled back: its writers get `EngineError`, and
    its readers try again.
    """

    def __init__(self) -> None:
        self.path = ""
        """The file that was opened last."""
        self._files: Mapping[str, os.stat_result] = {}
        """What identifies the open files."""
        self._lost = ""
        """Which of them was deleted or replaced, if any; then writes are refused."""
        self.unwritten: dict[Callable[[], None], None] = {}
        """Functions that write what is only in memory, before a commit: each cache adds its own.

        A dict keeps the order of the first writes; a set would order them by address.
        """
        self.caches: dict[str, Callable[[], None]] = {}
        """For each open namespace, what empties its caches when they may differ from the database."""
        self.connection: sqlite3.Connection = NO_CONNECTION
        self._copier: sqlite3.Connection = NO_CONNECTION
        """Copies the write-ahead log into the file in a thread, so that the event loop does not wait for the disk."""
        self._copying = asyncio.Lock()
        self._cannot_copy = False
        """Whether the latest copy failed."""
        self.upper_bound = 0
        """A number greater than all that `next_number` has returned."""
        self._noted_bound = 0
        """The bound that was last written."""
        self.group: CommitGroup | None = None
        """The operations that share the open transaction, if there is one."""
        self.commits = 0
        """How many groups have been committed."""
        self.is_failing = False
        """Whether the last write failed, for example because the disk is full."""

    @asynccontextmanager
    async def open_file(self, path: str, synchronous: str) -> AsyncIterator[None]:
        """Open the file, copy its log now and then, and complete pending operations at the end.

        SQLite copies the rest of the log when the last connection closes. `synchronous` is its option.
        """
        self.path = path
        check_writable(path)
        self.connection = await connect(path, synchronous=synchronous)
        try:
            self.connection.execute(f"PRAGMA wal_autocheckpoint = {_AUTOCHECKPOINT}")
            (self.upper_bound,) = self.connection.execute("SELECT next FROM numbers").fetchone()
            self._noted_bound = self.upper_bound
            self._files = file_identities(path)
            with closing(await connect(path, synchronous=synchronous)) as self._copier:
                copying = asyncio.create_task(self._copy_regularly())
                try:
                    yield
                finally:
                    copying.cancel()
                    with suppress(asyncio.CancelledError):
                        await copying
        finally:
            self.commit_now()
            self._files = {}  # SQLite deletes the log
            self.connection.close()
            self.connection = NO_CONNECTION

    async def write(self, work: Callable[Params, Result], *args: Params.args, **kwargs: Params.kwargs) -> Result:
        """Run `work` in the group's transaction; return after its commit.

        If `work` raises before it wrote anything, the exception reaches the caller and the group is unaffected.
        """
        group = self.group or await self._begin_group()
        try:
            result = self._run_in_group(work, *args, **kwargs)
        except Exception:
            if group.is_open:
                await group
            raise
        await group
        return result

    async def write_unawaited(
        self, work: Callable[Params, Result], *args: Params.args, **kwargs: Params.kwargs
    ) -> tuple[Result, CommitGroup]:
        """Run `work` in the group's transaction; return its result at once, and the group, to await its commit."""
        group = self.group or await self._begin_group()
        return self._run_in_group(work, *args, **kwargs), group

    async def read(self, work: Callable[Params, Result], *args: Params.args, **kwargs: Params.kwargs) -> Result:
        """Run `work`, which only reads, and return its result once everything that it read is committed."""
        if self.group is not None:
            with suppress(EngineError):  # a write of the group failed; committed data is still readable
                return await self.write(work, *args, **kwargs)
            self.commit_now()
        with engine_errors():
            return work(*args, **kwargs)

    def watch_files(self) -> None:
        """Find out whether the open files were deleted or replaced, and log it once. They may come back."""
        lost = find_lost_file(self._files)
        if lost and not self._lost:
            _log.error("%s; writes fail. Put the file back, or stop the service and %s", lost, restore_hint(self.path))
        self._lost = lost

    def check_files(self) -> None:
        """Raise `EngineError` if the open files are known to be lost."""
        if self._lost:
            raise EngineError(self._lost)

    async def snapshot(self, read: Callable[[sqlite3.Connection], Generator[Item]]) -> AsyncIterator[list[Item]]:
        """Yield pages of what `read` yields from the data that is committed now, while writing goes on.

        `read` has a connection of its own and runs in a thread: SQLite may sort a million rows before the first one.
        """
        self.commit_now()  # not later: writers may never pause
        self.watch_files()  # another connection would open the file that is there now
        self.check_files()
        with closing(await connect(self.path)) as connection, closing(read(connection)) as items, engine_errors():
            connection.execute(_SET_CACHE_SIZE)
            connection.execute("BEGIN")
            connection.execute("SELECT next FROM numbers").fetchone()  # a snapshot begins with its first read
            while page := await run_in_thread(lambda: list(islice(items, SNAPSHOT_PAGE)), connection.interrupt):
                yield page

    async def copy_log_now(self) -> None:
        """Copy the log now, so that it starts over and stays short. The caller writes much, and waits for this.

        Other writers may go on.
        """
        for _ in range(2):  # the second copies the few writes made during the first
            await self._copy_log()

    async def _copy_regularly(self) -> None:
        seen = self.commits
        while True:
            await asyncio.sleep(WATCH_INTERVAL)
            self.watch_files()
            if seen != self.commits:
                seen = self.commits
                await self._copy_log()

    async def _copy_log(self) -> None:
        """Copy the log. The first of several failures is logged."""
        try:
            async with self._copying:
                await run_in_thread(lambda: self._copier.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone())
        except sqlite3.Error as error:
            if not self._cannot_copy:
                _log.warning("cannot copy the write-ahead log into the file: %s", describe_error(error))
            self._cannot_copy = True
        else:
            self._cannot_copy = False

    def next_number(self) -> int:
        """Return a number greater than all before, of all namespaces; only inside a write."""
        self.upper_bound += 1
        return self.upper_bound - 1

    def flush(self) -> None:
        """Write all that is only in memory, inside a write."""
        while self.unwritten:
            write, _ = self.unwritten.popitem()
            write()
        if self._noted_bound != self.upper_bound:
            self._noted_bound = self.upper_bound
            self.connection.execute("UPDATE numbers SET next = ?", (self.upper_bound,))

    def flush_caches(self) -> None:
        """Write what the caches hold, and make them read from the database again."""
        self.flush()
        self._clear_caches()

    def commit_now(self) -> None:
        """Commit the open group, if there is one, without waiting for more writes to join it."""
        if self.group is not None:
            self._commit(self.group)

    def _run_in_group(self, work: Callable[Params, Result], *args: Params.args, **kwargs: Params.kwargs) -> Result:
        """Run `work`; roll the group back if a statement fails, or if `work` raises after it wrote something."""
        connection = self.connection
        changes = connection.total_changes
        try:
            return work(*args, **kwargs)
        except sqlite3.Error as error:
            raise self._roll_back(error) from error
        except BaseException as error:
            if connection.total_changes != changes:
                self._roll_back(error)
            raise

    async def _begin_group(self) -> CommitGroup:
        """Begin a transaction, without blocking the event loop, or return the group that has begun in the meantime.

        Waits while another program, such as an SQLite shell, is writing to the file.
        """
        self.check_files()
        for pause in RETRY_PAUSES:
            if self.group is not None:
                return self.group
            try:
                self.connection.execute("BEGIN IMMEDIATE")
            except sqlite3.Error as error:
                if not is_busy(error):
                    self.is_failing = True
                    raise EngineError(describe_error(error)) from error
            else:
                group = self.group = CommitGroup()
                # Two passes of the event loop later, so that requests that arrive during these operations join the
                # commit: that raises throughput by about a tenth.
                loop = asyncio.get_running_loop()
                loop.call_soon(loop.call_soon, self._commit, group)
                return group
            await asyncio.sleep(pause)
        raise EngineError(f"{self.path} is locked by another process")

    def _clear_caches(self) -> None:
        for clear in self.caches.values():
            clear()

    def _commit(self, group: CommitGroup) -> None:
        if group is not self.group:
            return  # rolled back, or committed by `close`
        try:
            self.flush()
            self.connection.execute("COMMIT")
        except BaseException as error:
            self._roll_back(error)
            if not isinstance(error, sqlite3.Error):
                raise
            return
        self.group = None
        self.is_failing = False
        self.commits += 1
        group.release()

    def _roll_back(self, error: BaseException) -> EngineError:
        group, self.group = self.group, None
        self.is_failing = True
        self.unwritten.clear()
        self._noted_bound = self.upper_bound  # nothing has the numbers of this group
        self._clear_caches()
        failure = f"nothing was written: {describe_error(error)}"
        try:
            if self.connection.in_transaction:  # SQLite rolls back by itself after some failures
                self.connection.execute("ROLLBACK")
        finally:
            if group is not None:
                group.release(failure)
        return EngineError(failure)
