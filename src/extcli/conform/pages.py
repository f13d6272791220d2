"""A page's connection for probes: the Pusher protocol, as the published SDK speaks it."""

from __future__ import annotations

import json
from typing import Any

from extcli import bounded_json
from extcli.api.websocket import WebSocketClient
from extcli.conform.calls import Exchange, Probing
from extcli.conform.rule import Differs
from extcli.conform.sockets import WAIT

PATH = "/app/conform?protocol=7"
_GREETING = "pusher:connection_established"
_SUBSCRIBED = "pusher_internal:subscription_succeeded"
_REFUSED = "pusher:subscription_error"


class Page:
    """One connection of a page."""

    def __init__(self, at: Probing, url: str) -> None:
        self._at = at
        self._socket = WebSocketClient(url, timeout=at.target.timeout, trace=lambda _: None)
        self._receive("a greeting", _GREETING)

    def subscribe(self, channel: str, authorization: str = "") -> int:
        """Subscribe to an extension's events in a channel, or in `all`. Returns 200, or the status of the refusal."""
        topic = f"twitch.pubsub.{self._at.target.client_id}.{channel}"
        self._send("pusher:subscribe", {"channel": topic, "auth": authorization})
        event, data = self._receive("the reply to pusher:subscribe", _SUBSCRIBED, _REFUSED)
        status = 200 if event == _SUBSCRIBED else int(data["status"])
        self._at.note(Exchange("page", "pusher:subscribe", {"channel": channel}, status, data, {}, ""))
        return status

    def heard(self) -> list[Any]:
        """Return the data of the short events so far. Pings first, so that earlier ones are here."""
        self._send("pusher:ping", {})
        found = []
        while (message := self._receive("pusher:pong"))[0] != "pusher:pong":
            found.append(bounded_json.decoded(message[1]["message"])["data"])
        return found

    def close(self) -> None:
        """Close the connection."""
        self._socket.close()

    def _send(self, event: str, data: object) -> None:
        self._at.target.pace.take(f"socket {id(self)}")
        self._socket.send(json.dumps({"event": event, "data": data}))

    def _receive(self, what: str, *events: str) -> tuple[str, Any]:
        """Return event and data of the next message. Raises `Differs` if it is none of these events."""
        text = self._socket.receive_text(WAIT)
        if text is None:
            raise Differs(what, f"a message within {WAIT:.0f} s", "none")
        found = bounded_json.decoded(text)
        if events and found["event"] not in events:
            raise Differs(what, " or ".join(events), found)
        data = found.get("data")
        return str(found["event"]), bounded_json.decoded(data) if isinstance(data, str) else data
