"""One game connection: its rights and its subscriptions."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from operator import attrgetter

from emulator.core.callers import Caller
from emulator.core.keys import Key
from emulator.realtime import closes
from emulator.realtime.peer import QueuedPeer
from emulator.realtime.refusals import too_many_subscriptions

MAX_FAILED_LOGINS = 10
"""Failed `authenticate` requests before a connection is closed (ruling T4)."""
_MAX_HELD_UPDATES = 256
"""Updates held back until a reply is sent."""
_rights_of = attrgetter("client_id", "channel_id", "role")


@dataclass(slots=True, eq=False, repr=False)
class Session(QueuedPeer):
    """One connection's rights and requests.

    Rights belong to the connection and outlive the token they came from (ruling X4), but not its extension's secret.
    """

    client_id: str
    """The path's client id; the one in `authenticate` overrides it (ruling X1)."""
    _answer: Callable[[Session, bytes], Awaitable[bytes]]
    """Returns the reply to one request, empty for none; never raises."""
    _admit: Callable[[Session, Caller], None]
    """Counts the session toward the caller's connections; raises `TooManyRequests`."""
    _max_topics: int
    failed_logins: int = 0
    """Failed `authenticate` requests so far."""
    _topics: set[Key] = field(default_factory=set)
    _held: list[bytes] = field(default_factory=list)
    _busy: bool = False

    @property
    def topics(self) -> frozenset[Key]:
        """The topics that the connection is subscribed to."""
        return frozenset(self._topics)

    @property
    def callers(self) -> Iterable[Caller]:
        """The caller, once the connection has authenticated."""
        return () if self.caller is None else (self.caller,)

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

    def on_open(self) -> None:
        """Do nothing: the client sends first."""

    def on_close(self) -> None:
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
        if len(self._held) > _MAX_HELD_UPDATES:
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

    def set_caller(self, caller: Caller) -> None:
        """Give the connection the rights of `caller`.

        If the client id, channel or role changes, all subscriptions end. Whispers follow the user. Raises
        `TooManyRequests` if there are too many connections, and `BadRequest` if the user's ids would need too many
        subscriptions; then nothing changes.
        """
        topics = self._topics_for(caller)
        if len(topics) > self._max_topics:
            raise too_many_subscriptions(total=len(topics), limit=self._max_topics)
        if not self._closed:
            self._admit(self, caller)
        self.caller = caller
        self.connection.allow_large_messages()
        self.unsubscribe(*(self._topics - topics))
        self.subscribe(*topics)

    def _topics_for(self, caller: Caller) -> set[Key]:
        """Return the topics that the present subscriptions have with the rights of another caller."""
        before = self.caller
        if before is not None and _rights_of(before) != _rights_of(caller):
            return set()
        if before is None or before.ids == caller.ids:
            return set(self._topics)
        private = {topic for topic in self._topics if topic.user}
        return (self._topics - private) | {topic._replace(user=user) for topic in private for user in caller.ids}

    async def _handle_message(self, text: bytes | None) -> None:
        if text is None:
            self.expel(closes.binary_message())
            return
        self._busy = True
        try:
            if reply := await self._answer(self, text):
                self.send(reply)
        finally:
            self._busy = False
            self._flush_held()
        if self.failed_logins >= MAX_FAILED_LOGINS:
            self.expel(closes.failed_logins(limit=MAX_FAILED_LOGINS))

    def _flush_held(self) -> None:
        held, self._held = self._held, []
        for frame in held:
            self.connection.write(frame)
