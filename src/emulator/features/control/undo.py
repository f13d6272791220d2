"""Undo of a reset: the data and the clock as they were are kept for a while, in a namespace of their own."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AsyncExitStack, suppress
from dataclasses import KW_ONLY, dataclass, field

from msgspec import Struct

from emulator.clock import SECOND, Clock
from emulator.engines.engine import Engine
from emulator.errors import Conflict, EngineError, Forbidden, NotFound, invalid_parameter
from emulator.features.control.rules import ClockRecord
from emulator.features.control.service import Control
from emulator.ids import NewId, token_id
from emulator.observability.audit import audit

MAX_SECONDS = 600


class Kept(Struct):
    """A reset that can be undone."""

    token: str
    at: int
    """When it was, in Unix ms by the service's clock after it."""
    expires_at: int
    """Until when it can be undone, likewise."""


@dataclass
class _Copy:
    kept: Kept
    engine: Engine
    clock: ClockRecord
    stack: AsyncExitStack
    expiry: asyncio.Task[None] | None = None


@dataclass(eq=False, repr=False)
class Undo:
    """Resets one service. At most one reset at a time can be undone."""

    control: Control
    clock: Clock
    open_copy: Callable[[], Engine]
    """Returns the engine, not yet open, of the namespace for the copy."""
    _: KW_ONLY
    can_copy: bool
    ended: Callable[[], None]
    """Called when a reset can no longer be undone."""
    new_id: NewId = token_id
    _copy: _Copy | None = None
    _changing: asyncio.Lock = field(default_factory=asyncio.Lock)

    def latest(self) -> Kept | None:
        """Return the reset that can be undone, if there is one."""
        return self._copy.kept if self._copy else None

    async def reset(self, seconds: int) -> str:
        """Delete all data and reset the clock, and return a token for `undo`; empty if `seconds` is 0.

        For so many seconds of real time the reset can be undone. Raises `BadRequest`, and `Forbidden` if storage
        cannot copy; then nothing is deleted.
        """
        if not 0 <= seconds <= MAX_SECONDS:
            raise invalid_parameter("undo", f"{seconds} is not within 0 to {MAX_SECONDS} seconds")
        if seconds and not self.can_copy:
            detail = "undo: this storage cannot copy data, or several workers share it; leave undo out"
            raise Forbidden("Cannot undo", detail)
        async with self._changing:
            await self._forget()
            if not seconds:
                await self.control.reset()
                audit("data reset")
                return ""
            stack = AsyncExitStack()
            try:
                engine = await stack.enter_async_context(self.open_copy())
                stack.push_async_callback(_drop, engine)
                state = await self.control.copy_to(engine)
                await self.control.reset()
            except BaseException:
                await stack.aclose()
                raise
            audit("data reset", seconds_to_undo=seconds)
            now = self.clock.now()
            kept = Kept(self.new_id(), now, now + seconds * SECOND)
            self._copy = _Copy(kept, engine, state, stack)
            self._copy.expiry = asyncio.create_task(self._expire(seconds))
            return kept.token

    async def undo(self, token: str) -> None:
        """Replace all data and the clock by those before the reset. Without a token, the latest reset is undone.

        Raises `NotFound` if there is none, and `Conflict` for the token of another one.
        """
        async with self._changing:
            copy = self._copy
            if copy is None:
                detail = "undo: no reset can be undone now; POST /_emulator/reset?undo=60 keeps the data for a minute"
                raise NotFound("Nothing to undo", detail)
            if token not in ("", copy.kept.token):
                raise Conflict(
                    "Nothing to undo", "undo: this is the token of an earlier reset; only the latest is kept"
                )
            await self.control.replace(copy.engine, copy.clock)
            audit("reset undone")
            await self._forget()

    async def close(self) -> None:
        """Drop the copy: the service stops."""
        async with self._changing:
            await self._forget()

    async def _expire(self, seconds: int) -> None:
        await asyncio.sleep(seconds)
        async with self._changing:
            copy, self._copy = self._copy, None
            if copy is not None:
                await copy.stack.aclose()
        self.ended()

    async def _forget(self) -> None:
        copy, self._copy = self._copy, None
        if copy is None:
            return
        if copy.expiry is not None:
            copy.expiry.cancel()
            await asyncio.gather(copy.expiry, return_exceptions=True)
        await copy.stack.aclose()
        self.ended()


async def _drop(engine: Engine) -> None:
    with suppress(EngineError):  # the next copy replaces what stays
        await engine.drop()
