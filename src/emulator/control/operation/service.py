"""The control service: readiness, reset, housekeeping and the clock."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import suppress
from functools import partial
from itertools import chain, starmap

from msgspec import Struct

from emulator.auth.signing_key import SigningKey
from emulator.control.operation.rules import (
    SYSTEM,
    ClockMove,
    ClockRecord,
    MovedClock,
    item_of,
    no_fork,
    starting,
    target_of,
)
from emulator.core.clock import SECOND, Clock, system_now
from emulator.core.config.settings import Settings
from emulator.core.errors import EngineError, storage_failed
from emulator.core.keys import Expired, Key
from emulator.core.limits.rate_limit import RateLimit
from emulator.core.observability.audit import audit
from emulator.core.observability.metrics import Metrics
from emulator.storage.engine import Engine
from emulator.storage.kinds import is_own
from emulator.storage.records import Record

RESET = "reset"
"""The kind of the notice that another process may have deleted all data."""
_MAX_CHECKS = 100
"""Checks of the storage per second, for any number of calls of `ready`."""
_CHECKS = ("", "")
_log = logging.getLogger("emulator")
_MAX_APART = 2 * SECOND


class Readiness(Struct):
    """The response of `ready`."""

    status: str
    environment: str
    version: str
    data: str


class Control:
    """Readiness, reset and clock of one running service."""

    def __init__(
        self, engine: Engine, key: SigningKey, clock: Clock, settings: Settings, version: str, recorder: Metrics
    ) -> None:
        self._engine = engine
        self._key = key
        self._recorder = recorder
        self._clock = clock
        self._settings = settings
        self._version = version
        self.on_change: list[Callable[[], None]] = []
        """Called when data was deleted, replaced or loaded, to drop what was kept of it outside storage."""
        self.on_wipe: list[Callable[[], None]] = []
        """Called when all data was deleted or replaced, but not when data was added."""
        self.on_reset: list[Callable[[], None]] = []
        """Called at a reset only, to forget what was observed and counted: the journal, for example."""
        self.on_load: list[Callable[[], None]] = []
        """Called after data was loaded and the clock set, after all other callbacks."""
        self.on_expiry: list[Callable[[Sequence[Expired]], None]] = []
        """Called with expired records when they are removed."""
        self.on_move: list[Callable[[], Awaitable[None]]] = []
        """Awaited after every move of the clock, before the response."""
        self._moving = asyncio.Lock()
        self._checks = RateLimit(clock, _MAX_CHECKS, window=SECOND)
        self._latest: asyncio.Task[None]
        """The latest check of `readiness`."""
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
        """Report that the service can handle requests; raises `Unavailable` if storage fails, or at the start.

        Beyond `_MAX_CHECKS` a second, calls share the latest check, which began a few milliseconds before.
        """
        if self.is_starting:
            raise starting()
        if not self._checks.delay(_CHECKS):
            self._latest = asyncio.ensure_future(self.check())
        try:
            await asyncio.shield(self._latest)
        except EngineError as error:
            self._recorder.storage(ok=False)
            raise storage_failed() from error
        self._recorder.storage(ok=True)
        return Readiness("ready", self._settings.environment.name, self._version, self._engine.name)

    async def reset(self, empty: Callable[[], Awaitable[None]] | None = None) -> ClockRecord:
        """Delete all data and reset the clock; send the notice `RESET` to all processes on the same data.

        `empty` is the engine's method that deletes them, by default for good. Returns the earlier state of the clock.
        """
        async with self._moving:
            state = self.read_clock()
            await (empty or self._engine.reset)()
            self._clock.reset()
            await self._key.restore()
            _call(self.on_change, self.on_wipe, self.on_reset)
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
        as it is. Without a signing key among the records, the service keeps its own. Raises `ValueError` for impossible
        records, and `EngineError`. Then nothing has changed.
        """
        is_moved = frozen_at is not None or (
            offset is not None and (offset != self._clock.offset or self._clock.frozen)
        )
        async with self._moving:
            await self._engine.load(pages, replace=replace)
            if is_moved:
                self._clock.restore(offset or 0, frozen_at)
            await self._key.restore()
            _call(self.on_change, self.on_wipe if replace else (), self.on_load)
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
            raise no_fork(engine=self._engine.name)
        clock = source.read_clock()
        await self.replace(partial(self._engine.copy, source._engine, now=clock.now), clock)

    async def replace(self, replace: Callable[[], Awaitable[None]], clock: ClockRecord) -> None:
        """Replace all data by this method of the engine, and set the clock as in `clock`. Raises `EngineError`."""
        async with self._moving:
            await replace()
            self._clock.restore(clock.offset, clock.now if clock.frozen else None)
            await self._key.restore()
            _call(self.on_change, self.on_wipe, self.on_load)
        await self._notify_peers()

    async def _notify_peers(self) -> None:
        with suppress(EngineError):
            await self._engine.relay.publish(Key(RESET, "", ""), b"")

    async def sweep(self) -> None:
        """Remove expired items. No response depends on it, except that a move of the clock does not list them."""
        async with self._moving:
            await self._purge(self._clock.now())
        await self._key.sync()
        await self._engine.tidy()  # without the lock, so that a move of the clock does not wait for it

    def read_clock(self) -> ClockRecord:
        return ClockRecord(self._clock.now(), self._clock.offset, self._clock.frozen)

    async def move_clock(self, move: ClockMove) -> MovedClock:
        """Move the clock, remove expired records, and list them. A refused move changes nothing.

        Records that expired before the move are removed first, so setting the clock back never revives them.
        """
        async with self._moving:
            target = target_of(move, self._clock.now() - (self._clock.offset if move.set == SYSTEM else 0))
            with self._clock.paused() as before:
                removed = await self._purge(before)
            if move.freeze is not None:  # first, so that a frozen clock stops at exactly the instant set
                self._clock.freeze(move.freeze)
            if move.set == SYSTEM:
                self._clock.set_to_system()
            elif target is not None:
                self._clock.set(target)
            self._clock.advance(move.advance or 0)
            record = self.read_clock()
            removed |= await self._purge(record.now)
            expired = sorted(starmap(Expired, removed.items()), key=lambda each: (each.at, each.key))
            for moved in self.on_move:
                await moved()
        audit("clock moved", now=str(record.now), expired_items=len(expired))
        return MovedClock(record.now, record.offset, record.frozen, [item_of(each) for each in expired])

    async def _purge(self, now: int) -> dict[Key, int]:
        """Remove the records that have expired at `now`; return those to report, and when each last expired."""
        removed: dict[Key, int] = {}
        async for expired in self._engine.purge(now=now):
            for note in self.on_expiry:
                note(expired)
            removed |= {key: at for key, at in expired if not is_own(key)}
        return removed


def _call(*lists: Iterable[Callable[[], None]]) -> None:
    for callback in chain(*lists):
        callback()
