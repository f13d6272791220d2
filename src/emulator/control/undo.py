"""Reset of a service, and its undo: storage keeps the earlier data and clock for a limited time."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import dataclass

from msgspec import UNSET, Struct, UnsetType

from emulator.contract.limits import MAX_UNDO_SECONDS
from emulator.control.operation import Control, earlier_reset, no_undo, nothing_to_undo
from emulator.core.changes import Changes
from emulator.core.clock import SECOND, Clock, ClockState
from emulator.core.errors import EngineError
from emulator.core.ids import token_id
from emulator.core.observability.audit import audit
from emulator.core.wire.refusals import invalid_parameter
from emulator.http.endpoint import Call, Nothing, Parameter, control_endpoint
from emulator.storage.engine import Engine


@dataclass
class UndoableReset:
    """A reset that can be undone."""

    token: str
    expires_at: int
    """The instant until which it can be undone, in Unix ms by the service's clock after it."""
    clock: ClockState
    """The clock before it."""
    expiry: asyncio.Task[None]


class ResetResult(Struct):
    """The response to a reset."""

    undo: str | UnsetType = UNSET
    """The token to undo it; absent if it cannot be undone."""


_SECONDS_PARAMETER = Parameter(
    "undo", f"How many seconds the reset can be undone, at most {MAX_UNDO_SECONDS}. Default: 0.", "integer"
)
_TOKEN_PARAMETER = Parameter("undo", "The token that the reset returned. Default: the latest reset.")


@dataclass(eq=False, repr=False)
class Undo:
    """Resets one service. At most one reset at a time can be undone."""

    _control: Control
    _engine: Engine
    _clock: Clock
    _changes: Changes

    def __post_init__(self) -> None:
        self.latest: UndoableReset | None = None
        """The reset that can be undone, if there is one."""
        self._change_lock = asyncio.Lock()

    @control_endpoint("POST", "/_emulator/reset", query=(_SECONDS_PARAMETER,), answer=ResetResult)
    async def reset(self, call: Call) -> ResetResult:
        """Delete all data, and set the clock back to the system time."""
        # The seconds are of real time. If storage cannot keep the data, nothing is deleted.
        seconds = call.integer("undo", 0)
        if not 0 <= seconds <= MAX_UNDO_SECONDS:
            raise invalid_parameter("undo", seconds, f"within 0 to {MAX_UNDO_SECONDS} seconds")
        if seconds and not self._engine.can_copy:
            raise no_undo()
        async with self._change_lock:
            if not seconds:
                await self._control.reset()
                audit("data reset")
                await self._delete_kept_data()
                return ResetResult()
            # It replaces the data of an earlier reset; if it fails, they stay.
            clock = await self._control.reset(self._engine.set_aside)
            audit("data reset", seconds_to_undo=seconds)
            self._make_final()
            expiry = asyncio.create_task(self._expire(seconds))
            self.latest = UndoableReset(token_id(), self._clock.now() + seconds * SECOND, clock, expiry)
            return ResetResult(self.latest.token)

    @control_endpoint("POST", "/_emulator/undo", query=(_TOKEN_PARAMETER,))
    async def undo_reset(self, call: Call) -> Nothing:
        """Undo the latest reset, if it kept its data. Data written since the reset is lost."""
        async with self._change_lock:
            kept = self.latest
            if kept is None:
                raise nothing_to_undo()
            if call.text("undo") not in ("", kept.token):
                raise earlier_reset()
            await self._control.replace(self._engine.take_back, kept.clock)
            audit("reset undone")
            await self._delete_kept_data()
        return Nothing()

    async def close(self) -> None:
        """Delete the kept data: the time is over, or the service stops."""
        async with self._change_lock:
            await self._delete_kept_data()

    async def _expire(self, seconds: int) -> None:
        await asyncio.sleep(seconds)
        await self.close()

    def _make_final(self) -> None:
        """Make the latest reset final, if it can still be undone. Its data stays in storage."""
        kept, self.latest = self.latest, None
        if kept is not None:
            if kept.expiry is not asyncio.current_task():
                kept.expiry.cancel()
            self._changes.wake()

    async def _delete_kept_data(self) -> None:
        """Make the latest reset final, and delete its data."""
        if self.latest is not None:
            self._make_final()
            with suppress(EngineError):  # the next reset or start deletes the rest
                await self._engine.drop_aside()
