"""The control service: readiness, reset, housekeeping and the clock."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import suppress
from functools import partial

from msgspec import Struct

from emulator.auth.signing_key import SigningKey
from emulator.clock import SECOND, Clock, system_now
from emulator.config.settings import Settings
from emulator.control.operation import refusals
from emulator.control.operation.rules import SYSTEM, ClockMove, ClockRecord, MovedClock, item_of, target_of
from emulator.engines.engine import Engine
from emulator.engines.records import Record
from emulator.engines.shapes import Expired, Key
from emulator.errors import EngineError, storage_failed
from emulator.limits.id_quota import is_quota_record
from emulator.observability.audit import audit
from emulator.observability.response_counts import Recorder

RESET = "reset"
"""The kind of the notice that another process may have deleted all data."""
_log = logging.getLogger("emulator")
_MAX_APART = 2 * SECOND
_MAX_UNREPORTED = 10_000
"""Expiries that housekeeping keeps to report at the next move of the clock."""


class Readiness(Struct):
    """The response of `ready`."""

    status: str
    environment: str
    version: str
    data: str


class Control:
    """Readiness, reset and clock of one running service."""

    def __init__(
        self, engine: Engine, key: SigningKey, clock: Clock, settings: Settings, version: str, recorder: Recorder
    ) -> None:
        self._engine = engine
        self._key = key
        self._recorder = recorder
        self._clock = clock
        self._settings = settings
        self._version = version
        self.on_reset: list[Callable[[], None]] = []
        """Called at every reset, to drop state kept outside storage."""
        self.on_wipe: list[Callable[[], None]] = []
        """Called when all data is deleted or replaced, but not when data is added."""
        self.on_load: list[Callable[[], None]] = []
        """Called after data was loaded and the clock set, after all other callbacks."""
        self.on_expiry: list[Callable[[Sequence[Expired]], None]] = []
        """Called with expired records when they are removed."""
        self.on_move: list[Callable[[], Awaitable[None]]] = []
        """Awaited after every move of the clock, before the response."""
        self._moving = asyncio.Lock()
        self._unreported: list[Expired] = []
        self.is_starting = False
        """Whether the service is still loading the data that it starts with."""

    async def check(self) -> None:
        """Raise `EngineError` if storage does not work."""
        await self._engine.check()
        await self._key.sync()

    async def compare_clocks(self, now: Callable[[], int] = system_now) -> None:
        """Log if this machine's time differs from the data server's, which other nodes may also use."""
        before = now()
        found = await self._engine.time()
        if found is None:
            return
        ahead = max(before - found, 0) or min(now() - found, 0)
        if abs(ahead) > _MAX_APART:
            message = (
                "the clock of this machine is %.1f s %s the clock of %s: PINs, tokens and polls may end early or late; "
                "synchronize the clocks of all nodes"
            )
            _log.warning(message, abs(ahead) / SECOND, "ahead of" if ahead > 0 else "behind", self._engine.location)

    async def readiness(self) -> Readiness:
        """Report that the service can handle requests; raises `Unavailable` if storage fails, or at the start."""
        if self.is_starting:
            raise refusals.starting()
        try:
            await self.check()
        except EngineError as error:
            self._recorder.storage(ok=False)
            raise storage_failed() from error
        self._recorder.storage(ok=True)
        return Readiness("ready", self._settings.environment.name, self._version, self._engine.name)

    async def reset(self) -> None:
        """Delete all data and reset the clock; send the notice `RESET` to all processes on the same data."""
        await self._empty_storage(self._engine.reset)

    async def set_aside(self) -> ClockRecord:
        """Delete all data and reset the clock, but keep the data in storage for `take_back`.

        Returns the earlier state of the clock. Every write that was acknowledged before is kept.
        """
        return await self._empty_storage(self._engine.set_aside)

    async def drop_aside(self) -> None:
        """Delete the data that `set_aside` kept."""
        await self._engine.drop_aside()

    async def take_back(self, clock: ClockRecord) -> None:
        """Restore the data that `set_aside` kept, and set the clock as in `clock`. Raises `EngineError`."""
        await self._replace(self._engine.take_back, clock)

    async def _empty_storage(self, empty: Callable[[], Awaitable[None]]) -> ClockRecord:
        async with self._moving:
            state = self.read_clock()
            await empty()
            self._clock.reset()
            await self._key.restore()
            self._forget(is_wiped=True)
        await self._notify_peers()
        return state

    async def load(
        self,
        pages: AsyncIterator[Sequence[Record]],
        *,
        replace: bool,
        offset: int | None = None,
        frozen_at: int | None = None,
    ) -> None:
        """Write records as `Engine.load` does, then set the clock; send the notice `RESET` as `reset` does.

        The clock freezes at `frozen_at` (Unix ms), or runs `offset` ms ahead of the system time; with neither, it stays
        as it is. Without a signing key among the records, the service keeps its own. If the clock would move but
        cannot, raises `Forbidden`; for impossible records, `ValueError`; and `EngineError`. Then nothing has changed.
        """
        is_moved = frozen_at is not None or (
            offset is not None and (offset != self._clock.offset or self._clock.frozen)
        )
        if is_moved:
            self._check_movable()
        async with self._moving:
            await self._engine.load(pages, replace=replace)
            if is_moved:
                self._clock.restore(offset or 0, frozen_at)
            await self._key.restore()
            self._forget(is_wiped=replace, is_loaded=True)
            if is_moved:
                for moved in self.on_move:
                    await moved()
        await self._notify_peers()

    async def size(self) -> int:
        """Return the number of records in the namespace, without the signing key. Raises `EngineError`."""
        return max(0, await self._engine.size() - 1)

    async def copy(self, source: Control) -> None:
        """Replace all data and the clock with another namespace's. Raises `Forbidden` if storage cannot copy."""
        if not self._engine.can_copy:
            raise refusals.no_fork(engine=self._engine.name)
        clock = source.read_clock()
        await self._replace(partial(self._engine.copy, source._engine, now=clock.now), clock)

    async def _replace(self, replace: Callable[[], Awaitable[None]], clock: ClockRecord) -> None:
        async with self._moving:
            await replace()
            self._clock.restore(clock.offset, clock.now if clock.frozen else None)
            await self._key.restore()
            self._forget(is_wiped=True, is_loaded=True)
        await self._notify_peers()

    def _forget(self, *, is_wiped: bool, is_loaded: bool = False) -> None:
        """Drop state kept outside storage, because data was deleted or replaced, or other data was loaded."""
        callbacks = list(self.on_reset)
        if is_wiped:
            self._unreported.clear()
            callbacks += self.on_wipe
        if is_loaded:
            callbacks += self.on_load
        for callback in callbacks:
            callback()

    async def _notify_peers(self) -> None:
        with suppress(EngineError):
            await self._engine.relay.publish(Key(RESET, "", ""), b"")

    async def sweep(self) -> None:
        """Remove expired items. No response depends on it; the next move of the clock reports them."""
        async with self._moving:
            self._unreported += await self._purge(self._clock.now())
            del self._unreported[:-_MAX_UNREPORTED]
        await self._key.sync()
        await self._engine.tidy()  # without the lock, so that a move of the clock does not wait for it

    def read_clock(self) -> ClockRecord:
        return ClockRecord(self._clock.now(), self._clock.offset, self._clock.frozen)

    async def move_clock(self, move: ClockMove) -> MovedClock:
        """Move the clock, remove expired records, and list them. A refused move changes nothing.

        Records that expired before the move are removed first, so setting the clock back never revives them.
        """
        self._check_movable()
        async with self._moving:
            target = target_of(move, self._clock.now() - (self._clock.offset if move.set == SYSTEM else 0))
            with self._clock.paused() as before:
                self._unreported += await self._purge(before)
            if move.freeze is not None:  # first, so that a frozen clock stops at exactly the instant set
                self._clock.freeze(move.freeze)
            if move.set == SYSTEM:
                self._clock.set_to_system()
            elif target is not None:
                self._clock.set(target)
            self._clock.advance(move.advance or 0)
            record = self.read_clock()
            self._unreported += await self._purge(record.now)
            expired, self._unreported = sorted(self._unreported, key=lambda each: each.at), []
            for moved in self.on_move:
                await moved()
        audit("clock moved", now=str(record.now), expired_items=len(expired))
        return MovedClock(record.now, record.offset, record.frozen, [item_of(each) for each in expired])

    def _check_movable(self) -> None:
        if self._settings.has_peers:
            raise refusals.fixed_clock()

    async def _purge(self, now: int) -> list[Expired]:
        """Remove the records that have expired at `now`, and return those to report."""
        expired = await self._engine.purge(now=now)
        for note in self.on_expiry:
            note(expired)
        return [each for each in expired if not is_quota_record(each.key)]
