"""Undo of a reset: storage keeps the earlier data and clock for a limited time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass, field

from msgspec import Struct

from emulator.clock import SECOND, Clock
from emulator.contract.limits import MAX_UNDO_SECONDS
from emulator.control.operation import refusals
from emulator.control.operation.rules import ClockRecord
from emulator.control.operation.service import Control
from emulator.errors import EngineError
from emulator.ids import NewId, token_id
from emulator.observability.audit import audit
from emulator.wire.refusals import invalid_parameter


class Kept(Struct):
    """A reset that can be undone."""

    token: str
    at: int
    """When it was, in Unix ms by the service's clock after it."""
    expires_at: int
    """The instant until which it can be undone, in the same form."""


@dataclass
class _Aside:
    kept: Kept
    clock: ClockRecord
    expiry: asyncio.Task[None]


@dataclass(eq=False, repr=False)
class Undo:
    """Resets one service. At most one reset at a time can be undone."""

    control: Control
    clock: Clock
    _: KW_ONLY
    can_keep: bool
    ended: Callable[[], None]
    """Called when a reset can no longer be undone."""
    new_id: NewId = token_id
    _aside: _Aside | None = None
    _changing: asyncio.Lock = field(default_factory=asyncio.Lock)

    def latest(self) -> Kept | None:
        """Return the reset that can be undone, if there is one."""
        return self._aside.kept if self._aside else None

    async def reset(self, seconds: int) -> str:
        """Delete all data and reset the clock, and return a token for `undo`; empty if `seconds` is 0.

        The reset can be undone for this many seconds of real time. Raises `BadRequest`, and `Forbidden` if storage
        cannot keep the data; then nothing is deleted.
        """
        if not 0 <= seconds <= MAX_UNDO_SECONDS:
            raise invalid_parameter("undo", seconds, f"within 0 to {MAX_UNDO_SECONDS} seconds")
        if seconds and not self.can_keep:
            raise refusals.no_undo()
        async with self._changing:
            if not seconds:
                await self.control.reset()
                audit("data reset")
                await self._forget()
                return ""
            clock = await self.control.set_aside()  # it replaces the data of an earlier reset; if it fails, they stay
            audit("data reset", seconds_to_undo=seconds)
            await self._end()
            now = self.clock.now()
            kept = Kept(self.new_id(), now, now + seconds * SECOND)
            self._aside = _Aside(kept, clock, asyncio.create_task(self._expire(seconds)))
            return kept.token

    async def undo(self, token: str) -> None:
        """Restore the data and the clock from before the reset. Without a token, the latest reset is undone.

        Every write acknowledged before the reset is there again; every later one is gone. Raises `NotFound` if there is
        no reset to undo, and `Conflict` for the token of another one.
        """
        async with self._changing:
            aside = self._aside
            if aside is None:
                raise refusals.nothing_to_undo()
            if token not in ("", aside.kept.token):
                raise refusals.earlier_reset()
            await self.control.take_back(aside.clock)
            audit("reset undone")
            await self._forget()

    async def close(self) -> None:
        """Delete the kept data, when the service stops."""
        async with self._changing:
            await self._forget()

    async def _expire(self, seconds: int) -> None:
        await asyncio.sleep(seconds)
        async with self._changing:
            await self._drop()
        self.ended()

    async def _end(self) -> bool:
        """Make the latest reset final, and return whether it could still be undone. Its data stays in storage."""
        aside, self._aside = self._aside, None
        if aside is None:
            return False
        aside.expiry.cancel()
        await asyncio.gather(aside.expiry, return_exceptions=True)
        self.ended()
        return True

    async def _forget(self) -> None:
        if await self._end():
            await self._drop()

    async def _drop(self) -> None:
        self._aside = None
        with suppress(EngineError):  # the next reset or start deletes the rest
            await self.control.drop_aside()
