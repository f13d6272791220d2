"""A client of the game socket that separates replies from updates."""

from __future__ import annotations

import json
from collections import deque
from contextlib import suppress
from types import TracebackType
from typing import Any, Self

from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

from support.service import CLIENT_ID, RunningService

TIMEOUT = 10.0
"""Seconds to wait for a message. Some come five seconds after the one before."""
NO_REQUEST = 65_535

Json = dict[str, Any]


class SocketClient:
    """One connection. Updates that arrive before a reply are kept for `update`."""

    def __init__(self, live: RunningService, path: str = f"/0.2.0/{CLIENT_ID}", **options: Any) -> None:
        url = f"{live.url.replace('http', 'ws', 1)}{path}"
        self._connection = connect(url, compression=None, open_timeout=TIMEOUT, close_timeout=TIMEOUT, **options)
        self.socket = self._connection.__enter__()
        self._updates: deque[Json] = deque()
        self._last = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._connection.__exit__(kind, error, at)

    def send(self, action: str, target: str = "", data: Json | None = None) -> int:
        """Send a request without waiting, and return its id."""
        self._last += 1
        params = {"request_id": self._last} | ({"target": target} if target else {})
        frame = {"action": action, "params": params} | ({} if data is None else {"data": data})
        self.socket.send(json.dumps(frame))
        return self._last

    def reply(self) -> Json:
        """Return the next message that is not an update."""
        while (message := self.message())["meta"]["action"] == "update":
            self._updates.append(message)
        return message

    def request(self, action: str, target: str = "", data: Json | None = None) -> Json:
        """Send a request and return the whole reply."""
        request_id = self.send(action, target, data)
        reply = self.reply()
        assert reply["meta"]["request_id"] == request_id
        return reply

    def data(self, action: str, target: str = "", data: Json | None = None) -> Json:
        """Send a request that must succeed, and return the reply's data."""
        reply = self.request(action, target, data)
        assert "errors" not in reply, reply
        return dict(reply["data"])

    def error(self, action: str, target: str = "", data: Json | None = None) -> Json:
        """Send a request that must fail, and return its one error."""
        reply = self.request(action, target, data)
        assert "data" not in reply, reply
        (error,) = reply["errors"]
        return dict(error)

    def update(self) -> Json:
        """Return the next update, whole."""
        if self._updates:
            return self._updates.popleft()
        message = self.message()
        assert message["meta"]["action"] == "update", message
        assert message["meta"]["request_id"] == NO_REQUEST
        return message

    def no_update(self) -> bool:
        """Return whether no update has arrived. Makes a request first, so that earlier updates are here."""
        self.request("get", "state", {"state_id": "channel"})
        return not self._updates

    def message(self) -> Json:
        """Return the next message of any kind."""
        return dict(json.loads(self.socket.recv(timeout=TIMEOUT)))

    def close_code(self) -> int:
        """Read until the connection is closed, and return the close code."""
        with suppress(ConnectionClosed):
            while True:
                self.message()
        assert self.socket.close_code is not None
        return self.socket.close_code


def request_pin(live: RunningService, channel: str = "777", client_id: str = CLIENT_ID, **claims: Any) -> str:
    """Return a PIN that is bound to a channel."""
    broadcaster = live.client("broadcaster", user=channel, channel=channel, client_id=client_id, **claims)
    return str(broadcaster.post("link/pin").raise_for_status().json()["pin"])


def linked_game(live: RunningService, channel: str = "777", client_id: str = CLIENT_ID, **claims: Any) -> SocketClient:
    """Return a client that authenticated for a channel."""
    game = SocketClient(live, f"/0.2.0/{client_id}")
    game.data("authenticate", data={"client_id": client_id, "pin": request_pin(live, channel, client_id, **claims)})
    return game
