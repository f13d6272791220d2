"""Controls of a service for tests: its clock, its faults and its sockets."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from extcli import clock
from extcli.api.control import Control
from extcli.api.websocket import WebSocketClient
from extcli.errors import Refused
from extcli.faults import checked_members
from extcli.output import times
from extcli.testing.actor import ModeT, Part, document, operation


class Clock(Part[ModeT]):
    """Moves the time of one namespace. Each move returns what expired, once it has expired."""

    def __init__(self, control: Control, *, awaited: bool) -> None:
        super().__init__(awaited=awaited)
        self._control = control

    @operation
    def now(self) -> int:
        """Return the time in Unix ms."""
        return self._now()

    @operation
    def advance(self, by: str | timedelta) -> list[dict[str, Any]]:
        """Move the clock forward by `"8d"`, `"1h30m"`, `"500ms"` or a timedelta."""
        ms = times.duration(by) if isinstance(by, str) else by // timedelta(milliseconds=1)
        return self._move({"advance": ms})

    @operation
    def set(self, to: str | int | datetime) -> list[dict[str, Any]]:
        """Set the time: RFC 3339, Unix ms or a datetime. The clock runs on from there, unless it is frozen."""
        return self._move({"set": self._instant(to)})

    @operation
    def freeze(self, at: str | int | datetime | None = None) -> list[dict[str, Any]]:
        """Stop the clock at its current time, or at the given time."""
        return self._move({"freeze": True} if at is None else {"freeze": True, "set": self._instant(at)})

    @operation
    def unfreeze(self) -> list[dict[str, Any]]:
        """Let a stopped clock run again."""
        return self._move({"freeze": False})

    def _now(self) -> int:
        return int(document(self._control.read_clock())["now"])

    def _instant(self, at: str | int | datetime) -> int:
        if isinstance(at, datetime):
            return round(at.timestamp() * 1000)
        return at if isinstance(at, int) else times.instant(at, self._now)

    def _move(self, change: Mapping[str, Any]) -> list[dict[str, Any]]:
        return list(document(self._control.move_clock(change))["expired"])


class Faults(Part[ModeT]):
    """Adds and removes faults. They end with the namespace, and with `reset`."""

    def __init__(self, control: Control, *, awaited: bool) -> None:
        super().__init__(awaited=awaited)
        self._control = control

    @operation
    def add(
        self,
        match: str | None = None,
        *,
        id: str | None = None,
        event: str | None = None,
        role: str | None = None,
        user: str | None = None,
        client_id: str | None = None,
        channel: str | None = None,
        status: int | None = None,
        retry_after: int | None = None,
        delay: str | timedelta | None = None,
        drop: bool = False,
        reset: bool = False,
        truncate: int | None = None,
        stall: bool = False,
        close: int | None = None,
        lose: bool = False,
        double: bool = False,
        reorder: bool = False,
        times: int | None = None,
        share: float | None = None,
        seed: int | None = None,
        lasts: str | timedelta | None = None,
    ) -> dict[str, Any]:
        """Add a fault, and return it: `add("POST /v1/e/vote", status=503, times=3)`.

        Takes the options of `extcli fault add`; `lasts` is `--for`. Raises `UsageError`, or `Refused` if the
        service finds an error.
        """
        given = {
            "match": match, "id": id, "event": event, "role": role, "user": user, "client_id": client_id,
            "channel": channel, "status": status, "retry_after": retry_after, "delay": _text(delay), "drop": drop,
            "reset": reset, "truncate": truncate, "stall": stall, "close": close, "lose": lose, "double": double,
            "reorder": reorder, "times": times, "share": share, "seed": seed, "for": _text(lasts),
        }  # fmt: skip
        return dict(document(self._control.add_fault(checked_members(given, _option_name))))

    @operation
    def list(self) -> list[dict[str, Any]]:
        """Return the faults, oldest first, with the number of their `hits`."""
        return [*document(self._control.list_faults())["faults"]]

    @operation
    def remove(self, id: str) -> None:
        """Remove one fault."""
        self._control.remove_fault(id)

    @operation
    def clear(self) -> None:
        """Remove all faults."""
        self._control.clear_faults()


def _option_name(option: str) -> str:
    return "lasts" if option == "for" else option


def _text(duration: str | timedelta | None) -> str | None:
    return f"{duration // timedelta(milliseconds=1)}ms" if isinstance(duration, timedelta) else duration


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
        """Close the connection. The end of the test also closes it."""
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
