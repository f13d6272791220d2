"""WebSockets of games and pages, as rules use them."""

from __future__ import annotations

import json
from collections import deque
from typing import Any

from extcli import bounded_json
from extcli.api import websocket
from extcli.api.websocket import Closed, WebSocketClient
from extcli.conform.calls import Exchange, Probing
from extcli.conform.rule import Differs, expect, expect_status
from extcli.errors import ExitCode
from extcli.reading import Json

FRAME_SECONDS = 5.0
"""How long a probe waits for a frame, in seconds."""
READ_ACTIONS = ("get", "subscribe", "unsubscribe", "authenticate")


class GameSocket:
    """A connection of a game. Updates that arrive before a reply are kept for `update`."""

    def __init__(self, at: Probing, client: WebSocketClient) -> None:
        self._at = at
        self.client = client
        self._updates: deque[Json] = deque()
        self._last = 0

    def send(self, action: str, target: str = "", data: Any = None) -> int:
        """Send a request without waiting for the reply, and return its id."""
        if "writes" not in self._at.rule.traits and action not in READ_ACTIONS:
            raise AssertionError(f"{self._at.rule.name} writes ({action} {target}), but is not marked `writes`")
        self._note_write(action, target, data)
        self._last += 1
        self.client.send(websocket.request(action, target, data, self._last))
        return self._last

    def reply(self) -> Json:
        """Return the next message that is not an update."""
        while (message := self.message("a reply"))["meta"].get("action") == "update":
            self._updates.append(message)
        return message

    def request(self, action: str, target: str = "", data: Any = None) -> Json:
        """Send a request and return the whole reply, which must have its id."""
        number = self.send(action, target, data)
        reply = self.reply()
        name = f"{action} {target}".strip()
        errors = reply.get("errors")
        status = errors[0].get("status", 0) if isinstance(errors, list) and errors else 200
        self._at.exchanges.append(Exchange("game", name, data, status, reply, {}, self._request_id))
        if reply["meta"].get("request_id") != number:
            raise Differs(f"the request_id in the reply to {name}", number, reply["meta"].get("request_id"))
        return reply

    def data(self, action: str, target: str = "", data: Any = None) -> Json:
        """Send a request that must succeed, and return the data of its reply."""
        return {**self.request(action, target, data)["data"]}

    def error(self, action: str, target: str = "", data: Any = None) -> Json:
        """Send a request that must fail, and return its first error."""
        return {**self.request(action, target, data)["errors"][0]}

    def refuses(self, status: int, action: str, target: str = "", data: Any = None, *, case: str = "") -> Json:
        """Send a request that must fail with this status, and return its first error."""
        error = self.error(action, target, data)
        expect_status(f"the status {case or f'of {action} {target}'.strip()}", status, error.get("status"))
        return error

    def authenticate(self, **credential: str) -> Json:
        """Authenticate with this `pin`, `jwt` or `refresh`, and return the data of the reply."""
        return self.data("authenticate", data={"client_id": self._at.target.client_id, **credential})

    def refuses_credential(self, **credential: str) -> Json:
        """Authenticate with a credential that must be refused, and return the error."""
        return self.error("authenticate", data={"client_id": self._at.target.client_id, **credential})

    def update(self, what: str = "an update") -> Json:
        """Return the next complete update. Raises `Differs` if none arrives in time."""
        if self._updates:
            message = self._updates.popleft()
        else:
            message = self.message(what)
            if message["meta"].get("action") != "update":
                raise Differs(what, "an update", message)
        self._at.exchanges.append(Exchange("game", "update", None, 0, message, {}, self._request_id))
        return message

    def next_updates(self, number: int) -> list[Json]:
        """Return the next updates, after checking that there are no more."""
        found = [self.update() for _ in range(number)]
        self.request("get", "state", {"state_id": "channel"})  # its reply arrives after all earlier updates
        expect("the number of updates", number, number + len(self._updates))
        return found

    def close_code(self) -> int:
        """Read until the service closes the connection, and return the close code."""
        try:
            while True:
                self.message("the end of the connection")
        except Closed as closed:
            if closed.code is None:
                raise
            return closed.code

    def _note_write(self, action: str, target: str, data: Any) -> None:
        """Record what to remove after a request, which may succeed even if no reply arrives."""
        members, written = data if isinstance(data, dict) else {}, self._at.writes
        if action == "create" and target == "poll":
            written += [(None, "vote", str(members.get("poll_id", "default"))), (None, "channel_state", "")]
        elif action in ("set", "patch") and target in ("state", "config"):
            written.append((None, f"channel_{target}", ""))
        elif action == "authenticate" and "writes" in self._at.rule.traits and "jwt" in members:
            written.append((None, "pin", ""))

    @property
    def _request_id(self) -> str:
        handshake, number = self.client.place
        return f"{handshake}/{number}" if handshake else ""

    def message(self, what: str = "a message") -> Json:
        """Return the next message of any kind. Raises `Differs` if none arrives in time."""
        try:
            message = self.client.receive(FRAME_SECONDS)
        except Closed as closed:
            if closed.exit_code == ExitCode.SERVICE_FAILED and closed.code is None:
                raise Differs(what, "a message with meta", closed.what) from None
            raise
        if message is None:
            # Silence of this socket is a difference, silence of the whole service is not.
            self._at.target.http.send("GET", "/v1/e/user_info")
            raise Differs(what, f"a message within {FRAME_SECONDS:.0f} s", "none")
        return message.document


_SUBSCRIBED = "pusher_internal:subscription_succeeded"


class PageSocket:
    """One connection of a page."""

    def __init__(self, at: Probing, client: WebSocketClient) -> None:
        self._at = at
        self._client = client
        self._receive("a greeting", "pusher:connection_established")

    def subscribe(self, channel: str, authorization: str = "") -> int:
        """Subscribe to an extension's events in a channel, or in `all`. Returns 200, or the status of the refusal."""
        topic = f"twitch.pubsub.{self._at.target.client_id}.{channel}"
        self._send("pusher:subscribe", {"channel": topic, "auth": authorization})
        event, data = self._receive("the reply to pusher:subscribe", _SUBSCRIBED, "pusher:subscription_error")
        status = 200 if event == _SUBSCRIBED else int(data["status"])
        self._at.exchanges.append(Exchange("page", "pusher:subscribe", {"channel": channel}, status, data, {}, ""))
        return status

    def events_so_far(self) -> list[Any]:
        """Return the data of the short events so far.

        First sends a ping, whose reply arrives after all earlier events.
        """
        self._send("pusher:ping", {})
        found = []
        while (message := self._receive("pusher:pong"))[0] != "pusher:pong":
            found.append(bounded_json.decoded(message[1]["message"])["data"])
        return found

    def _send(self, event: str, data: object) -> None:
        self._client.send(json.dumps({"event": event, "data": data}))

    def _receive(self, what: str, *events: str) -> tuple[str, Any]:
        """Return event and data of the next message. Raises `Differs` unless it is one of these events."""
        text = self._client.receive_text(FRAME_SECONDS)
        if text is None:
            raise Differs(what, f"a message within {FRAME_SECONDS:.0f} s", "none")
        found = bounded_json.decoded(text)
        if events and found["event"] not in events:
            raise Differs(what, " or ".join(events), found)
        data = found.get("data")
        return str(found["event"]), bounded_json.decoded(data) if isinstance(data, str) else data
