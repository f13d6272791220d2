"""The clock's control, the reset, and whether the service is ready."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from msgspec import Struct

from emulator.auth.signing_key import SigningKey
from emulator.clock import END_OF_TIME, Clock, clamp_instant
from emulator.config.settings import Settings
from emulator.engines.base import Expired
from emulator.engines.engine import Engine
from emulator.errors import BadRequest, EngineError, Forbidden, Unavailable
from emulator.limits.id_quota import QUOTA_KIND
from emulator.observability.recorder import Recorder

_MOST_UNTOLD = 10_000
"""How many expiries housekeeping keeps for a move of the clock that may never come."""


class ClockMove(Struct):
    """What to do to the clock: set it, advance it from there, and have it stand or run from there on."""

    set: int | None = None
    """Unix ms."""
    advance: int | None = None
    """In ms."""
    freeze: bool | None = None


class ClockRecord(Struct):
    """The service's time in Unix ms, and how far it is ahead of the machine's."""

    now: int
    offset: int
    frozen: bool


class Due(Struct):
    """Something that came to its end."""

    kind: str
    id: str
    at: int
    client_id: str
    channel_id: str


class MovedClock(ClockRecord):
    """The clock after a move, and what fell due by it, in order of time."""

    expired: list[Due]


class Readiness(Struct):
    """What `ready` says."""

    status: str
    environment: str
    version: str
    data: str


class Control:
    """What an operator may do to a running service. `forget` drops what the service remembers beside its data."""

    def __init__(
        self, engine: Engine, key: SigningKey, clock: Clock, settings: Settings, version: str, recorder: Recorder
    ) -> None:
        self._engine = engine
        self._key = key
        self._recorder = recorder
        self._clock = clock
        self._settings = settings
        self._version = version
        self._on_reset: list[Callable[[], None]] = []
        self._on_move: list[Callable[[], Awaitable[None]]] = []
        self._moving = asyncio.Lock()
        self._untold: list[Expired] = []

    def on_reset(self, forget: Callable[[], None]) -> None:
        """Have `forget` called at every reset."""
        self._on_reset.append(forget)

    def on_move(self, moved: Callable[[], Awaitable[None]]) -> None:
        """Have `moved` awaited after every move of the clock, before it is answered."""
        self._on_move.append(moved)

    async def check(self) -> None:
        """Return if a request sent next will not fail; raise `EngineError` if storage would let it down."""
        await self._engine.check()
        await self._key.sync()

    async def readiness(self) -> Readiness:
        """Returns when a request sent next will not fail; raises `Unavailable` otherwise."""
        try:
            await self.check()
        except EngineError as error:
            self._recorder.storage(ok=False)
            raise Unavailable from error
        self._recorder.storage(ok=True)
        return Readiness("ready", self._settings.environment.name, self._version, self._engine.name)

    async def reset(self) -> None:
        """All data and the clock's offset are gone."""
        async with self._moving:
            await self._engine.reset()
            self._clock.reset()
            await self._key.restore()
            self._untold.clear()
            for forget in self._on_reset:
                forget()

    async def sweep(self) -> None:
        """Give back the room of what has ended. No answer depends on it: the next move of the clock tells of it."""
        async with self._moving:
            self._untold += await self._engine.purge(now=self._clock.now())
            del self._untold[:-_MOST_UNTOLD]
        await self._key.sync()
        await self._engine.tidy()  # not under the lock: nobody waits for it

    def read_clock(self) -> ClockRecord:
        """Where the clock stands."""
        return ClockRecord(self._clock.now(), self._clock.offset, self._clock.frozen)

    async def move_clock(self, move: ClockMove) -> MovedClock:
        """Move the clock, apply every expiry that falls due, and list them; a refused move changes nothing.

        What was past its end before the move is removed first, so that setting the clock back never brings back
        what had ended, whether or not housekeeping had run. Moves take their turns.
        """
        if self._settings.has_peers:
            raise Forbidden("Forbidden", "the clock is one process's own: with --workers over 1 it cannot be moved")
        async with self._moving:
            _check(move, self._clock.now())
            with self._clock.paused() as before:
                self._untold += await self._engine.purge(now=before)
            if move.freeze is not None:  # first, so that it stands at the very instant that it is set to
                self._clock.freeze(move.freeze)
            if move.set is not None:
                self._clock.set(move.set)
            self._clock.advance(move.advance or 0)
            record = self.read_clock()
            self._untold += await self._engine.purge(now=record.now)
            expired, self._untold = sorted(self._untold, key=lambda one: one.at), []
            for moved in self._on_move:
                await moved()
        return MovedClock(
            record.now, record.offset, record.frozen, [_due(each) for each in expired if each.key.kind != QUOTA_KIND]
        )


def _check(move: ClockMove, now: int) -> None:
    """Raise `BadRequest` for a move that goes back without `set`, or to where no clock goes."""
    if move.advance is not None and move.advance < 0:
        raise BadRequest("Invalid body", "advance: must be 0 or more ms; use set to go back")
    target = (now if move.set is None else move.set) + (move.advance or 0)
    if target != clamp_instant(target):
        raise BadRequest("Invalid body", f"the clock would stand at {target}; it goes from 0 to {END_OF_TIME - 1} ms")


def _due(expired: Expired) -> Due:
    key = expired.key
    name = key.name or key.user or key.channel or key.owner
    return Due(key.kind, name, expired.at, key.owner, key.channel or "")
