"""One game connection: its rights, its subscriptions and its queue of requests."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field

from emulator.core.callers import Caller
from emulator.core.errors import ServiceError
from emulator.core.keys import Key
from emulator.core.observability.entries import close_entry
from emulator.realtime import closes
from emulator.realtime.hub import Hub
from emulator.realtime.refusals import too_many_subscriptions
from emulator.realtime.websocket import WebSocket

MAX_FAILED_LOGINS = 10
"""Failed `authenticate` requests before a connection is closed (ruling T4)."""
_MAX_QUEUED = 32
"""Requests in the queue before reading pauses."""
_MAX_QUEUED_BYTES = 4 * 1024 * 1024
_BATCH, _BATCH_BYTES = 32, 16 * 1024
"""Requests of one connection, and their bytes, answered before other connections run."""
_MAX_HELD = 256
"""Updates held back until a reply is sent."""


@dataclass(slots=True, eq=False, repr=False)  # a node may hold many thousands, most of them idle
class Session:
    """One connection's rights and requests, handled in order. A `Peer` and a `Subscriber`.

    Rights belong to the connection and outlive the token they came from (ruling X4), but not its extension's secret.
    """

    connection: WebSocket
    client_id: str
    """The path's client id; the one in `authenticate` overrides it (ruling X1)."""
    _hub: Hub
    _answer: Callable[[Session, bytes], Awaitable[bytes]]
    """Returns the reply to one request, empty for none; never raises."""
    _admit: Callable[[Session, Caller], None]
    """Counts the session toward the caller's connections; raises `TooManyRequests`."""
    _on_close: Callable[[Session], None]
    _max_topics: int
    caller: Caller | None = None
    number: int = 0
    """Its number among the connections of the service. Set by `Admission.add`, like `opened_at`."""
    opened_at: int = 0
    """Unix ms by the service's clock."""
    request_count: int = 0
    """Requests handled so far; numbers them in the log."""
    frame_count: int = 0
    """Replies and updates so far."""
    failed_logins: int = 0
    """Failed `authenticate` requests so far."""
    _topics: set[Key] = field(default_factory=set)
    _queue: list[bytes | None] = field(default_factory=list)
    _queued_bytes: int = 0
    _held: list[bytes] = field(default_factory=list)
    _task: asyncio.Task[None] | None = None
    _busy: bool = False
    _paused: bool = False
    _closing: bool = False
    _closed: bool = False

    @property
    def topics(self) -> frozenset[Key]:
        """The topics that the connection is subscribed to."""
        return frozenset(self._topics)

    @property
    def callers(self) -> Iterable[Caller]:
        """The caller, once the connection has authenticated."""
        return () if self.caller is None else (self.caller,)

    @property
    def is_reachable(self) -> bool:
        return self.connection.is_reachable

    @property
    def has_room(self) -> bool:
        return self.connection.has_room(sum(map(len, self._held)))

    @property
    def label(self) -> str:
        """The session's number and caller, as logs and the dashboard show them."""
        caller = self.caller
        who = "not authenticated" if caller is None else f"{caller.role} {caller.channel_id or ''}".rstrip()
        return f"socket {self.number} (game, {who})"

    # Called by the connection

    def opened(self) -> None:
        """Do nothing: the client sends first."""

    def received(self, text: bytes | None) -> None:
        """Queue a request; requests are handled in order, one at a time (ruling X2)."""
        if self._closing:
            return
        self._queue.append(text)
        self._queued_bytes += len(text or b"")
        if len(self._queue) >= _MAX_QUEUED or self._queued_bytes >= _MAX_QUEUED_BYTES:
            self._paused = True
            self.connection.pause()
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._run())

    def going_away(self) -> None:
        """Close with code 1001 after the current request; drop queued requests."""
        self._closing = True
        self._queue.clear()
        if self._task is None:
            self.connection.close(closes.stopped())

    def expel(self, error: ServiceError) -> None:
        """Close because of a limit, an ended secret or a call of the control API. Queued requests are dropped."""
        self._queue.clear()
        self._closing = True
        self.connection.close(error)

    def refused(self, error: ServiceError) -> None:
        """Add a close by the service to the journal."""
        self._hub.journal.record(close_entry, self.number, self.connection.request_id, self.caller, error)

    def closed(self) -> None:
        """Drop all subscriptions. Requests already queued still run, without a reply."""
        self._closed = True
        for topic in self._topics:
            self._hub.unsubscribe(topic, self)
        self._topics.clear()
        self._on_close(self)

    def write(self, frame: bytes, count: int = 1) -> None:
        """Queue updates in one piece; during a request, hold them back until the reply is sent."""
        self.frame_count += count
        if not self._busy:
            self.connection.write(frame)
            return
        self._held.append(frame)
        if len(self._held) > _MAX_HELD:
            self._flush_held()

    # Called by actions

    def subscribe(self, *topics: Key) -> None:
        """Subscribe to topics; raises `BadRequest` beyond the connection's limit."""
        added = set(topics) - self._topics
        if self._closed:
            return
        total = len(self._topics) + len(added)
        if total > self._max_topics:
            raise too_many_subscriptions(total=total, limit=self._max_topics)
        self._topics |= added
        for topic in added:
            self._hub.subscribe(topic, self)

    def unsubscribe(self, *topics: Key) -> None:
        """Unsubscribe from topics; ignores those not subscribed to."""
        self._topics -= set(topics)
        for topic in topics:
            self._hub.unsubscribe(topic, self)

    def is_subscribed(self, topic: Key) -> bool:
        return topic in self._topics

    def set_caller(self, caller: Caller) -> None:
        """Give the connection the rights of `caller`.

        If the client id, channel or role changes, all subscriptions end. Whispers follow the user. Raises
        `TooManyRequests` if there are too many connections, and `BadRequest` if the user's ids would need too many
        subscriptions; then nothing changes.
        """
        topics = self._topics_of(caller)
        if len(topics) > self._max_topics:
            raise too_many_subscriptions(total=len(topics), limit=self._max_topics)
        if not self._closed:
            self._admit(self, caller)
        self.caller = caller
        self.connection.allow_large_messages()
        self.unsubscribe(*(self._topics - topics))
        self.subscribe(*topics)

    def _topics_of(self, caller: Caller) -> set[Key]:
        """Return the topics that the present subscriptions have with the rights of another caller."""
        before = self.caller
        if before and (before.client_id, before.channel_id, before.role) != (
            caller.client_id,
            caller.channel_id,
            caller.role,
        ):
            return set()
        if before is None or before.ids == caller.ids:
            return set(self._topics)
        private = {topic for topic in self._topics if topic.user}
        return (self._topics - private) | {topic._replace(user=user) for topic in private for user in caller.ids}

    async def _run(self) -> None:
        done = size = 0
        try:
            while self._queue:
                text = self._queue.pop(0)
                self._queued_bytes -= len(text or b"")
                size += len(text or b"")
                if text is None:
                    self.expel(closes.binary_message())
                    return
                self._busy = True
                if reply := await self._answer(self, text):
                    self.connection.send(reply)
                    self.frame_count += 1
                self._busy = False
                self._flush_held()
                if self.failed_logins >= MAX_FAILED_LOGINS:
                    self.expel(closes.failed_logins(limit=MAX_FAILED_LOGINS))
                if self._paused and len(self._queue) < _MAX_QUEUED // 2:
                    self._paused = False
                    self.connection.resume()
                done += 1
                if done >= _BATCH or size >= _BATCH_BYTES:
                    done = size = 0
                    await asyncio.sleep(0)
        finally:
            self._busy = False
            self._flush_held()
            self._task = None
            if self._closing:  # also if `going_away` came before the first request was begun
                self.connection.close(closes.stopped())

    def _flush_held(self) -> None:
        held, self._held = self._held, []
        for frame in held:
            self.connection.write(frame)
