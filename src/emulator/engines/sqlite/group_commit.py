"""One connection, and one transaction for all that is written in one turn of the event loop.

It knows when an operation may return; what the operation does is left to the shapes.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import ParamSpec, Protocol, TypeVar

from emulator.engines.sqlite.connection import PAUSES, connected, is_busy, said
from emulator.engines.sqlite.corruption import Corruption, examine
from emulator.errors import EngineError

Given = ParamSpec("Given")
Answer = TypeVar("Answer")


_READINGS = 20
"""How often a reader tries, while others fail to write in the turns that it falls into."""


class WriteCache(Protocol):
    """Something of the database that is held in memory between turns."""

    def flush(self) -> None:
        """Write what so far stands in memory only; the transaction is about to be committed."""
        ...

    def forget(self) -> None:
        """Hold nothing: the transaction was rolled back, or someone else has written."""
        ...


class GroupCommit:
    """`write` and `read` run a plain function at once and return its answer when nothing it saw can be lost.

    The first write of a turn begins a transaction, and the loop commits it when what was ready by then has had its
    turn. When a statement or the commit fails, all of it is undone: who wrote gets EngineError, who read reads again.
    """

    def __init__(self, path: str | None, *, awaits_disk: bool = False) -> None:
        self.path = path
        self._awaits_disk = awaits_disk
        self.damage = Corruption(path)
        self.held: list[WriteCache] = []
        self._connection: sqlite3.Connection | None = None
        self._loop: asyncio.AbstractEventLoop
        self._turn: list[asyncio.Future[None]] | None = None
        self._version = 0
        self.commits = 0
        """How many turns have been committed."""
        self.is_failing = False
        """Whether the last write failed, for which the disk may have a reason that lasts."""

    @property
    def connection(self) -> sqlite3.Connection:
        if self._connection is None:
            raise EngineError("the engine is closed")
        return self._connection

    async def open(self) -> None:
        self._loop = asyncio.get_running_loop()
        if self.path is not None:
            await asyncio.to_thread(examine, self.path)
        self._connection = await connected(self.path)
        if self._awaits_disk:
            self._connection.execute("PRAGMA synchronous = FULL")

    def close(self) -> None:
        if self._connection is None:
            return
        if self._turn is not None:
            self._commit(self._turn)
        self.forget()
        self._connection.close()
        self._connection = None

    async def write(self, work: Callable[Given, Answer], *args: Given.args, **kwargs: Given.kwargs) -> Answer:
        """Run `work` in the turn's transaction; return once that is committed.

        An exception of `work`'s own reaches the caller and leaves the turn alone, if nothing was written yet.
        """
        if self._turn is None:
            await self._begin()
        return await self._run_in_turn(work, *args, **kwargs)

    async def read(self, work: Callable[Given, Answer], *args: Given.args, **kwargs: Given.kwargs) -> Answer:
        """Run `work`, which only reads, on one state of the database; return once that state is committed."""
        undone: EngineError | None = None
        for _ in range(_READINGS):
            if self._turn is None and self.path is None:
                with self.damage.noted():
                    return work(*args, **kwargs)
            if self._turn is None and await self._entered("BEGIN"):
                with self.damage.noted():
                    try:
                        return work(*args, **kwargs)
                    finally:
                        if self.connection.in_transaction:
                            self.connection.execute("COMMIT")
            try:
                return await self._run_in_turn(work, *args, **kwargs)
            except EngineError as error:  # by others, who could not write; what was committed can still be read
                undone = error
        assert undone is not None
        raise undone

    def version(self) -> int:
        """A number that changes when another connection has written."""
        with self.damage.noted():
            (version,) = self.connection.execute("PRAGMA data_version").fetchone()
        return int(version)

    @asynccontextmanager
    async def snapshot(self) -> AsyncIterator[sqlite3.Connection]:
        """Another connection to the file, which sees what is committed now for as long as it is open."""
        self.damage.check()
        connection = await connected(self.path)
        try:
            with self.damage.noted():
                connection.execute("BEGIN")
                connection.execute("SELECT next FROM numbers").fetchone()  # a snapshot begins with its first read
                yield connection
        finally:
            connection.close()

    async def another(self, *, check_same_thread: bool = True) -> sqlite3.Connection:
        """Another connection to the file, to be closed by whoever asked for it."""
        return await connected(self.path, check_same_thread=check_same_thread)

    async def settled(self) -> None:
        """Return when there is nothing uncommitted."""
        if self._turn is not None:
            with suppress(EngineError):
                await self._committed(self._turn)

    async def _run_in_turn(self, work: Callable[Given, Answer], *args: Given.args, **kwargs: Given.kwargs) -> Answer:
        turn = self._turn
        assert turn is not None
        connection = self.connection
        changes = connection.total_changes
        try:
            answer = work(*args, **kwargs)
        except sqlite3.Error as error:
            raise self._undo(error) from error
        except Exception as error:
            if connection.total_changes != changes:
                self._undo(error)
            else:
                await self._committed(turn)
            raise
        except BaseException as error:
            self._undo(error)
            raise
        await self._committed(turn)
        return answer

    async def _committed(self, turn: list[asyncio.Future[None]]) -> None:
        # One future each, so that a cancelled operation takes nobody with it.
        waiter = self._loop.create_future()
        turn.append(waiter)
        await waiter

    async def _begin(self) -> None:
        if await self._entered("BEGIN IMMEDIATE"):
            turn: list[asyncio.Future[None]] = []
            self._turn = turn
            # Not in the next turn but the one after, so that requests which came in while this turn's operations ran
            # are in the same commit: about a tenth more of them in the same time.
            self._loop.call_soon(self._loop.call_soon, self._commit, turn)

    async def _entered(self, statement: str) -> bool:
        """Begin a transaction, or return False if a turn is open by the time it could begin.

        Waits for other writers without stopping the loop.
        """
        self.damage.check()
        for pause in PAUSES:
            if self._turn is not None:
                return False
            try:
                self.connection.execute(statement)
                self._validate()
            except sqlite3.Error as error:
                if self.connection.in_transaction:
                    self.connection.execute("ROLLBACK")
                if not is_busy(error):
                    self._fail(error)
                    raise EngineError(said(error)) from error
            else:
                return True
            await asyncio.sleep(pause)
        raise EngineError(f"{self.path} is locked by another process")

    def _validate(self) -> None:
        """Forget what is held if another connection has written since."""
        if self.path is not None:
            (version,) = self.connection.execute("PRAGMA data_version").fetchone()
            if version != self._version:
                self._version = version
                self.forget()

    def _commit(self, turn: list[asyncio.Future[None]]) -> None:
        if turn is not self._turn:
            return  # undone, or committed by `close`
        try:
            for held in self.held:
                held.flush()
            self.connection.execute("COMMIT")
        except BaseException as error:
            self._undo(error)
            if not isinstance(error, sqlite3.Error):
                raise
            return
        self._turn = None
        self.is_failing = False
        self.commits += 1
        for waiter in turn:
            if not waiter.done():
                waiter.set_result(None)

    def _undo(self, error: BaseException) -> EngineError:
        turn, self._turn = self._turn, None
        self._fail(error)
        self.forget()
        try:
            if self.connection.in_transaction:  # some failures have rolled back already
                self.connection.execute("ROLLBACK")
        finally:
            for waiter in turn or ():
                if not waiter.done():
                    waiter.set_exception(EngineError(f"nothing was written: {said(error)}"))
        return EngineError(f"nothing was written: {said(error)}")

    def _fail(self, error: BaseException) -> None:
        self.is_failing = True
        self.damage.note(error)

    def forget(self) -> None:
        """Make everyone read again what they hold."""
        for held in self.held:
            held.forget()
