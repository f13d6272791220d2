"""What the connections of games and pages have in common: the queue of their messages, and how they end."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, field
from typing import Any

from emulator.core.callers import Caller
from emulator.core.errors import ServiceError
from emulator.core.observability.entries import close_entry
from emulator.realtime import closes
from emulator.realtime.hub import Hub
from emulator.realtime.websocket import WebSocket

_MAX_QUEUED = 32
"""Messages in the queue before reading pauses."""
_MAX_QUEUED_BYTES = 4 * 1024 * 1024
_BATCH, _BATCH_BYTES = 32, 16 * 1024
"""Messages of one connection, and their bytes, handled before other connections run."""


@dataclass(slots=True, eq=False, repr=False)  # a node may hold many thousands, most of them idle
class QueuedPeer:
    """One connection, whose messages are handled in order. A `Peer` and a `Subscriber`."""

    connection: WebSocket
    _hub: Hub
    _on_close: Callable[[Any], None]
    _: KW_ONLY
    number: int = 0
    """Its number among the connections of the service. Set by `Admission.add`, like `opened_at`."""
    opened_at: int = 0
    """Unix ms by the service's clock."""
    caller: Caller | None = None
    """The caller of a game that has authenticated; pages have one per subscription."""
    request_count: int = 0
    """Messages handled so far; numbers them in the log."""
    frame_count: int = 0
    """Messages sent so far."""
    _queue: list[bytes | None] = field(default_factory=list)
    _queued_bytes: int = 0
    _task: asyncio.Task[None] | None = None
    _paused: bool = False
    _closing: bool = False
    _closed: bool = False

    async def _handle_message(self, text: bytes | None) -> None:
        """Handle one message; `None` is a binary one. Never raises."""
        raise NotImplementedError

    @property
    def is_reachable(self) -> bool:
        return self.connection.is_reachable

    def on_message(self, text: bytes | None) -> None:
        """Queue a message; messages are handled in order, one at a time (ruling X2)."""
        if self._closing:
            return
        self._queue.append(text)
        self._queued_bytes += len(text or b"")
        if len(self._queue) >= _MAX_QUEUED or self._queued_bytes >= _MAX_QUEUED_BYTES:
            self._paused = True
            self.connection.pause()
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._handle_queue())

    def on_service_stop(self) -> None:
        """Close with code 1001 after the current message; drop queued messages. Pages reconnect on it."""
        self._closing = True
        self._queue.clear()
        if self._task is None:
            self.connection.close(closes.stopped())

    def expel(self, error: ServiceError) -> None:
        """Close because of a limit, an ended secret or a call of the control API. Queued messages are dropped."""
        self._queue.clear()
        self._closing = True
        self.connection.close(error)

    def on_refusal(self, error: ServiceError) -> None:
        """Add a close by the service to the journal."""
        self._hub.journal.record(close_entry, self.number, self.connection.request_id, self.caller, error)

    def write(self, frame: bytes, count: int = 1) -> None:
        """Queue `count` frames in one piece."""
        self.frame_count += count
        self.connection.write(frame)

    def send(self, text: bytes) -> None:
        """Queue one message."""
        self.frame_count += 1
        self.connection.send(text)

    async def _handle_queue(self) -> None:
        done = size = 0
        try:
            while self._queue:
                text = self._queue.pop(0)
                self._queued_bytes -= len(text or b"")
                size += len(text or b"")
                await self._handle_message(text)
                if self._paused and len(self._queue) < _MAX_QUEUED // 2:
                    self._paused = False
                    self.connection.resume()
                done += 1
                if done >= _BATCH or size >= _BATCH_BYTES:
                    done = size = 0
                    await asyncio.sleep(0)
        finally:
            self._task = None
            if self._closing:  # also if `on_service_stop` came before the first message was begun
                self.connection.close(closes.stopped())
