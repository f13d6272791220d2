"""Applies faults to messages of games, to handshakes and to broadcasts."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from emulator.contract.faults import DEFAULT_CLOSE_CODE
from emulator.core.callers import Caller
from emulator.core.errors import EngineError
from emulator.core.faults import (
    BROADCAST,
    CLOSE,
    CONNECT,
    DELAY,
    DOUBLE,
    LOSE,
    MESSAGE,
    REORDER,
    RESET,
    STALL,
    FaultHit,
    Faults,
    FaultSubject,
    Pause,
)
from emulator.core.keys import Key
from emulator.core.observability.request_context import RequestContext, add_fault, with_delivery_fault
from emulator.realtime.closes import closed_by_fault
from emulator.realtime.envelope import Request
from emulator.realtime.session import Session

REORDER_WAIT = 1.0
"""Seconds of real time after which a held broadcast is sent without another."""
_log = logging.getLogger("emulator")

SendBroadcast = Callable[[], Awaitable[None]]


async def apply_message_fault(faults: Faults, session: Session, request: Request, context: RequestContext) -> None:
    """Apply the fault that matches a message.

    After a delay, returns; any other fault raises `FaultError`. `NoResponse` means that the message gets no reply; the
    fault has then already closed or stalled the connection.
    """
    caller, channel = session.caller, None
    client_id = session.client_id
    if caller is not None:
        client_id, channel = caller.client_id, caller.channel()
    hit = faults.choose(FaultSubject(MESSAGE, request.action, request.target, caller, client_id, channel))
    if hit is None:
        return
    context.fault = hit.header
    if hit.fault.effect == DELAY and await hit.wait_for_delay():
        return
    error = hit.error()
    if hit.fault.effect == RESET:
        session.connection.reset()
    elif hit.fault.effect == STALL:
        session.connection.stall()
        hit.held.add(session.connection)
    elif hit.fault.effect == CLOSE:
        session.expel(closed_by_fault(fault=hit.fault.id, code=hit.fault.code or DEFAULT_CLOSE_CODE))
    context.production = ""
    raise error


async def apply_handshake_fault(faults: Faults, client_id: str) -> None:
    """Apply the fault that matches a handshake.

    After a delay, returns; any other fault raises `FaultError`. For `NoResponse`, the caller closes or stalls the
    connection as the fault says.
    """
    hit = faults.choose(FaultSubject(CONNECT, "", "", None, client_id))
    if hit is None:
        return
    add_fault(hit.header)
    if hit.fault.effect != DELAY or not await hit.wait_for_delay():
        raise hit.error()


class FaultyBroadcasts:
    """Sends the broadcasts of one service, unless a fault loses, doubles, holds or delays them."""

    def __init__(self, faults: Faults) -> None:
        self._faults = faults
        self._held: dict[Key, tuple[Pause, asyncio.Task[None]]] = {}
        """The broadcasts that wait for another one of the same event in the same channel."""
        self._later: set[asyncio.Task[None]] = set()

    async def send(self, caller: Caller, of: Key, send: SendBroadcast, lose: Callable[[], None]) -> None:
        """Send a broadcast. At most one fault applies to it, for all recipients.

        `of` is the key of its event. A fault that loses the broadcast calls `lose` instead of `send`. A delayed
        broadcast is sent after this returns, unless a reset or stop discards it.
        """
        if not self._held and BROADCAST not in self._faults.kinds:
            await send()
            return
        former = self._held.pop(of, None)
        attempt = FaultSubject(BROADCAST, of.name, "", caller, of.owner, of.channel)
        hit = self._faults.choose(attempt, without=REORDER if former else "")
        if hit is None:
            await send()
        else:
            await self._send_with_fault(hit, of, send, lose)
        if former is not None:
            pause, task = former
            pause.release()
            await asyncio.wait((task,))

    async def close(self) -> None:
        """Wait for the tasks of delayed broadcasts, whose delays have been cancelled."""
        await asyncio.gather(*self._later)

    async def _send_with_fault(self, hit: FaultHit, of: Key, send: SendBroadcast, lose: Callable[[], None]) -> None:
        add_fault(hit.header)
        with with_delivery_fault(hit.fault.id):
            if hit.fault.effect == LOSE:
                lose()
            elif hit.fault.effect == DOUBLE:
                await send()
                await send()
            else:
                pause = hit.pause()
                seconds = REORDER_WAIT if hit.fault.effect == REORDER else hit.delay / 1_000
                task = asyncio.create_task(self._send_late(hit, pause, seconds, send))
                self._later.add(task)
                task.add_done_callback(self._later.discard)
                if hit.fault.effect == REORDER:
                    self._held[of] = pause, task
                    task.add_done_callback(lambda _: self._forget_held(of, task))

    async def _send_late(self, hit: FaultHit, pause: Pause, seconds: float, send: SendBroadcast) -> None:
        await pause.wait(seconds)
        if hit.held.is_void:
            return
        try:
            await send()
        except EngineError as error:
            _log.warning("cannot send a broadcast that fault %s delayed: %s", hit.fault.id, error)

    def _forget_held(self, of: Key, task: asyncio.Task[None]) -> None:
        if of in self._held and self._held[of][1] is task:
            del self._held[of]
