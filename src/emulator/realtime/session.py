"""What the service knows of one connection: who it is, what it follows, and which of its requests are still to do."""

from __future__ import annotations

import asyncio
from typing import Protocol

from websockets.frames import CloseCode

from emulator.callers import Caller
from emulator.engines.base import Key
from emulator.errors import BadRequest
from emulator.realtime.hub import Hub

MOST_FAILURES = 10
"""Failed attempts to authenticate after which a connection is closed (ruling T4)."""
_MOST_WAITING = 32
"""Requests that may wait before no more are read."""
_AT_ONCE = 32
"""Requests of one connection that are answered before the others have their turn."""
_MOST_HELD = 256
"""Updates that wait for an answer to go out first."""
_MOST_BYTES_WAITING = 4 * 1024 * 1024


class Outlet(Protocol):
    """The connection, as far as a session uses it."""

    request_id: str
    """That of the handshake."""

    def send(self, text: bytes) -> None: ...
    def write(self, frame: bytes) -> None: ...
    def close(self, code: int, reason: str = "") -> None: ...
    def pause(self) -> None: ...
    def resume(self) -> None: ...
    def check(self) -> None: ...


class Answers(Protocol):
    """Where the requests of all sessions are answered."""

    hub: Hub

    async def answer(self, session: Session, text: bytes) -> bytes:
        """The one reply to one request; raises nothing."""
        ...

    def left(self, session: Session) -> None:
        """This session has ended."""
        ...

    def move(self, session: Session, client_id: str) -> None:
        """Count it for this client id; raises `TooManyRequests`."""
        ...


class Session:
    """One connection's requests, one after the other, and its rights. A `Peer` and a `Subscriber`.

    Rights belong to the connection: they outlive the token they came from (ruling X4).
    """

    # There may be many thousands, most of them idle.
    __slots__ = (
        "_answers",
        "_bytes_waiting",
        "_ended",
        "_held",
        "_is_answering",
        "_leaving",
        "_most_topics",
        "_paused",
        "_topics",
        "_waiting",
        "_work",
        "asked",
        "caller",
        "client_id",
        "failures",
        "outlet",
    )

    def __init__(self, outlet: Outlet, client_id: str, answers: Answers, *, most_topics: int) -> None:
        self.client_id = client_id
        """That of the address; the one of `authenticate` decides (ruling X1)."""
        self.caller: Caller | None = None
        self.asked = 0
        """Requests that were taken up, by which they are told apart."""
        self.failures = 0
        """Attempts to authenticate that failed."""
        self.outlet = outlet
        self._answers = answers
        self._most_topics = most_topics
        self._topics: set[Key] = set()
        self._waiting: list[bytes | None] = []
        self._bytes_waiting = 0
        self._paused = False
        self._leaving = False
        self._ended = False
        self._work: asyncio.Task[None] | None = None
        self._is_answering = False
        self._held: list[bytes] = []

    # A peer of the connection

    def opened(self) -> None:
        """Wait for the first request: nobody is greeted."""

    def received(self, text: bytes | None) -> None:
        """Queue a request; they are answered in order, one at a time (ruling X2)."""
        if self._leaving:
            return
        self._waiting.append(text)
        self._bytes_waiting += len(text or b"")
        if len(self._waiting) >= _MOST_WAITING or self._bytes_waiting >= _MOST_BYTES_WAITING:
            self._paused = True
            self.outlet.pause()
        if self._work is None:
            self._work = asyncio.get_running_loop().create_task(self._answer_all())

    def going_away(self) -> None:
        """Close (1001) when what is being done is done; what came after it stays unanswered."""
        self._leaving = True
        self._waiting.clear()
        if self._work is None:
            self.outlet.close(CloseCode.GOING_AWAY, "the service stops")

    def ended(self) -> None:
        """Follow nothing more. What came before the end is still done, though nobody hears of it."""
        self._ended = True
        for topic in self._topics:
            self._answers.hub.unsubscribe(topic, self)
        self._topics.clear()
        self._answers.left(self)

    def write(self, frame: bytes) -> None:
        """Queue an update; one that comes while a request is being answered goes out behind the answer."""
        if not self._is_answering:
            self.outlet.write(frame)
            return
        self._held.append(frame)
        if len(self._held) > _MOST_HELD:
            self._hand_out()

    # For actions

    def subscribe(self, *topics: Key) -> None:
        """Hear of topics from now on; raises `BadRequest` when that would be too many."""
        fresh = set(topics) - self._topics
        if self._ended:
            return
        following = len(self._topics) + len(fresh)
        if following > self._most_topics:
            detail = f"the connection would follow {following} topics, and at most {self._most_topics} are allowed"
            raise BadRequest("Too many subscriptions", detail)
        self._topics |= fresh
        for topic in fresh:
            self._answers.hub.subscribe(topic, self)

    def unsubscribe(self, *topics: Key) -> None:
        """Hear of them no more; fine for what was never followed."""
        self._topics -= set(topics)
        for topic in topics:
            self._answers.hub.unsubscribe(topic, self)

    def is_subscribed(self, topic: Key) -> bool:
        """Whether the session has subscribed to it."""
        return topic in self._topics

    def set_caller(self, caller: Caller) -> None:
        """Take these rights. Subscriptions that came with other rights end.

        Raises `TooManyRequests` when the client id has too many connections; then nothing changes.
        """
        if not self._ended:
            self._answers.move(self, caller.client_id)
        before, self.caller = self.caller, caller
        if before and (before.client_id, before.channel_id, before.role) != (
            caller.client_id,
            caller.channel_id,
            caller.role,
        ):
            self.unsubscribe(*self._topics)

    async def _answer_all(self) -> None:
        done = 0
        try:
            while self._waiting:
                text = self._waiting.pop(0)
                self._bytes_waiting -= len(text or b"")
                if text is None:
                    self._close(CloseCode.UNSUPPORTED_DATA, "text frames only")
                    return
                self._is_answering = True
                self.outlet.send(await self._answers.answer(self, text))
                self._is_answering = False
                self._hand_out()
                if self.failures >= MOST_FAILURES:
                    self._close(CloseCode.POLICY_VIOLATION, f"{MOST_FAILURES} failed attempts to authenticate")
                if self._leaving:
                    self.outlet.close(CloseCode.GOING_AWAY, "the service stops")
                if self._paused and len(self._waiting) < _MOST_WAITING // 2:
                    self._paused = False
                    self.outlet.resume()
                done += 1
                if done % _AT_ONCE == 0:
                    await asyncio.sleep(0)
        finally:
            self._is_answering = False
            self._hand_out()
            self._work = None

    def _hand_out(self) -> None:
        """Send what was held back behind an answer."""
        held, self._held = self._held, []
        for frame in held:
            self.outlet.write(frame)

    def _close(self, code: int, reason: str) -> None:
        self._waiting.clear()
        self._leaving = True
        self.outlet.close(code, reason)
