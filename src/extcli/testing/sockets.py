"""Games and listeners: WebSocket connections of a test."""

from __future__ import annotations

from contextlib import suppress
from typing import Any, NamedTuple

from extcli import clock
from extcli.api.websocket import WebSocketClient
from extcli.errors import Refused
from extcli.testing.operation import ModeT, Part, operation

TIMEOUT = 5.0
"""Seconds to wait for an update, unless a test gives another time."""


class Event(NamedTuple):
    """A broadcast event."""

    name: str
    data: Any


class Game(Part[ModeT]):
    """The WebSocket of a game."""

    def __init__(self, socket: WebSocketClient, *, awaited: bool) -> None:
        super().__init__(awaited=awaited)
        self._socket = socket

    @operation
    def request(self, action: str, target: str = "", data: object = None) -> dict[str, Any]:
        """Send a request, and return the data of its reply. Raises `Refused`."""
        return self._socket.request(action, target, data).data

    @operation
    def subscribe(self, target: str, topic: str = "") -> None:
        """Subscribe to updates: `subscribe("poll", "boss")`, `subscribe("broadcast", "round-over")`."""
        self._socket.request("subscribe", target, {"topic_id": topic} if topic else None)

    @operation
    def update(self, timeout: float = TIMEOUT) -> dict[str, Any]:
        """Return the next update, with `meta` and `data`. Raises `AssertionError` after `timeout` seconds."""
        message = self._socket.next_update(clock.elapsed() + timeout)
        assert message is not None, f"the game received no update within {timeout:g} s"
        return message.document

    @operation
    def close(self) -> None:
        """Close the connection. The end of the test does it, too."""
        self._socket.close()


class Events(Part[ModeT]):
    """The events that a page of the extension receives."""

    def __init__(self, socket: WebSocketClient, names: tuple[str, ...], *, awaited: bool) -> None:
        super().__init__(awaited=awaited)
        self._socket = socket
        self._names = names
        for name in names:
            socket.request("subscribe", "broadcast", {"topic_id": name})

    @operation
    def next(self, timeout: float = TIMEOUT) -> Event:
        """Wait for the next event. Raises `AssertionError` after `timeout` seconds."""
        event = self._next(clock.elapsed() + timeout)
        assert event is not None, f"no event {' or '.join(self._names)} within {timeout:g} s"
        return event

    @operation
    def received(self) -> list[Event]:
        """Return the events that were sent before this call, without those already returned."""
        # The reply comes after every update that the service sent before it.
        with suppress(Refused):
            self._socket.request("get", "state", {"state_id": "channel"})
        found: list[Event] = []
        while event := self._next(clock.elapsed()):
            found.append(event)
        return found

    def _next(self, deadline: float) -> Event | None:
        message = self._socket.next_update(deadline)
        if message is None:
            return None
        return Event(str(message.data.get("event", "")), message.data.get("data"))
