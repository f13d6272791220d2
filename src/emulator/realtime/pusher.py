"""The Pusher protocol 7, as far as the published SDK speaks it: how pages hear of broadcasts.

Only public channels are served, and of them only those that broadcasts go to; nothing needs a key.
"""

from __future__ import annotations

import json
import math
from itertools import count
from typing import Any, Final

import msgspec
from msgspec import Struct

from emulator.engines.base import Key
from emulator.errors import BadRequest
from emulator.realtime.hub import Hub
from emulator.realtime.session import Outlet

PREFIX: Final = "twitch.pubsub."
EVERYWHERE: Final = "all"
ACTIVITY_TIMEOUT: Final = 120
"""Seconds of silence after which a page asks whether the connection still stands."""
PROTOCOLS: Final = (5, 6, 7)
_LONGEST_CHANNEL: Final = 200
_numbers = count(1)


class _Frame(Struct, omit_defaults=True):
    """One message of the protocol; `data` is JSON in a JSON string, as Pusher sends it."""

    event: str
    channel: str = ""
    data: Any = None


def pusher_topic(client_id: str, channel_id: str) -> Key:
    """What the pages of an extension in a channel follow; without a channel, its pages everywhere."""
    return Key("page", client_id, "", channel_id)


def broadcast_frame(topic: Key, event: str, message: str) -> bytes:
    """A broadcast, for the followers of a topic."""
    channel = f"{PREFIX}{topic.owner}.{topic.channel or EVERYWHERE}"
    return _frame(event, channel, {"message": message})


def topic_of(channel: str) -> Key | None:
    """The topic that a channel's name means, `None` for a channel that broadcasts do not go to."""
    client_id, dot, channel_id = channel.removeprefix(PREFIX).rpartition(".")
    if not channel.startswith(PREFIX) or not dot or not client_id or not channel_id:
        return None
    return pusher_topic(client_id, "" if channel_id == EVERYWHERE else channel_id)


class Page:
    """One page's connection. A `Peer` of its socket and a `Subscriber` of the hub."""

    __slots__ = ("_channels", "_hub", "_left", "_most", "_protocol", "outlet")

    def __init__(self, outlet: Outlet, hub: Hub, protocol: int | None, *, most: int, left: Any) -> None:
        self.outlet = outlet
        self._hub = hub
        self._protocol = protocol
        self._most = most
        self._left = left
        self._channels: dict[str, Key | None] = {}

    def opened(self) -> None:
        """Greet the page, or say why it cannot be served."""
        if self._protocol not in PROTOCOLS:
            self.outlet.send(_error(4007, f"unsupported protocol version; one of {PROTOCOLS} is spoken here"))
            self.outlet.close(4007, "unsupported protocol version")
            return
        number = next(_numbers)
        data = {"socket_id": f"{number}.{math.trunc(number * 7919) % 1_000_000}", "activity_timeout": ACTIVITY_TIMEOUT}
        self.outlet.send(_frame("pusher:connection_established", "", data))

    def received(self, text: bytes | None) -> None:
        """Answer one message; a bad one is answered too, and the connection stays."""
        try:
            self._act(*_read(text))
        except BadRequest as error:
            self.outlet.send(_error(4300, error.detail))

    def going_away(self) -> None:
        """The service stops; the page is to connect again."""
        self.outlet.close(1001, "the service stops")

    def ended(self) -> None:
        """Hear nothing more."""
        for topic in self._channels.values():
            if topic is not None:
                self._hub.unsubscribe(topic, self)
        self._channels.clear()
        self._left(self)

    def write(self, frame: bytes) -> None:
        """Queue a broadcast."""
        self.outlet.write(frame)

    def _act(self, event: str, data: dict[str, Any]) -> None:
        if event == "pusher:ping":
            self.outlet.send(_frame("pusher:pong", "", {}))
        elif event == "pusher:subscribe":
            self._subscribe(_channel(data))
        elif event == "pusher:unsubscribe":
            topic = self._channels.pop(_channel(data), None)
            if topic is not None:
                self._hub.unsubscribe(topic, self)
        elif event != "pusher:pong":
            raise BadRequest("Bad frame", f"event: there is no {event[:60]!r} here; pages send over REST")

    def _subscribe(self, channel: str) -> None:
        if channel.startswith(("private-", "presence-")):
            refusal = {"type": "AuthError", "error": "only public channels are served here", "status": 403}
            self.outlet.send(_frame("pusher:subscription_error", channel, refusal))
            return
        if len(self._channels) >= self._most and channel not in self._channels:
            raise BadRequest("Too many subscriptions", f"a page may subscribe to {self._most} channels")
        topic = topic_of(channel)
        self._channels[channel] = topic
        if topic is not None:
            self._hub.subscribe(topic, self)
        self.outlet.send(_frame("pusher_internal:subscription_succeeded", channel, {}))


def _read(text: bytes | None) -> tuple[str, dict[str, Any]]:
    """Event and data of a frame; `data` may be an object, or JSON in a string."""
    if text is None:
        raise BadRequest("Bad frame", "binary messages are not understood")
    try:
        frame = msgspec.json.decode(text)
        data = frame.get("data") if isinstance(frame, dict) else None
        data = msgspec.json.decode(data) if isinstance(data, str) and data else data
    except (msgspec.MsgspecError, RecursionError):
        raise BadRequest("Bad frame", "this is not readable as JSON") from None
    if not isinstance(frame, dict) or not isinstance(frame.get("event"), str):
        raise BadRequest("Bad frame", "event: the message names none")
    return frame["event"], data if isinstance(data, dict) else {}


def _channel(data: dict[str, Any]) -> str:
    channel = data.get("channel")
    if not isinstance(channel, str) or not 1 <= len(channel) <= _LONGEST_CHANNEL:
        raise BadRequest("Bad frame", f"data.channel: a name of 1 to {_LONGEST_CHANNEL} characters")
    return channel


def _frame(event: str, channel: str, data: object) -> bytes:
    return msgspec.json.encode(_Frame(event, channel, json.dumps(data, ensure_ascii=False, separators=(",", ":"))))


def _error(code: int, message: str) -> bytes:
    """Data as an object: of errors, clients read it without decoding it once more."""
    return msgspec.json.encode(_Frame("pusher:error", data={"code": code, "message": message}))
