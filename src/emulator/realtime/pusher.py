"""The Pusher protocol (version 7), by which web pages receive broadcasts. Only public channels, without a key."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec
from msgspec import Struct
from websockets.frames import CloseCode

from emulator.engines.base import Key
from emulator.errors import BadRequest
from emulator.observability.masking import masked_text
from emulator.observability.request_context import RequestContext
from emulator.realtime.connection import Connection
from emulator.realtime.hub import Hub
from emulator.realtime.recording import close_entry, frame_entry

PREFIX: Final = "twitch.pubsub."
EVERYWHERE: Final = "all"
PAGE: Final = "page"
"""The kind of the topics of pages."""
ACTIVITY_TIMEOUT: Final = 120
"""Seconds of silence before a page pings the service."""
PROTOCOLS: Final = (5, 6, 7)
_MAX_CHANNEL_LENGTH: Final = 200


class _SubscriptionError(Struct):
    """The data of a refused subscription."""

    type: str
    error: str
    status: int


class _Frame(Struct, omit_defaults=True):
    """One message; `data` is JSON inside a JSON string."""

    event: str
    channel: str = ""
    data: Any = None


_PRIVATE: Final = _SubscriptionError("AuthError", "only public channels are supported", 403)


def pusher_topic(client_id: str, channel_id: str) -> Key:
    """The topic of an extension's pages in one channel, or in all channels if `channel_id` is empty."""
    return Key(PAGE, client_id, "", channel_id)


def broadcast_frame(topic: Key, event: str, message: str) -> bytes:
    """Serialize a broadcast to a topic's subscribers."""
    channel = f"{PREFIX}{topic.owner}.{topic.channel or EVERYWHERE}"
    return _frame(event, channel, {"message": message})


def topic_of(channel: str) -> Key | None:
    """The topic of a Pusher channel; `None` if it is not a broadcast channel."""
    client_id, dot, channel_id = channel.removeprefix(PREFIX).rpartition(".")
    if not channel.startswith(PREFIX) or not dot or not client_id or not channel_id:
        return None
    return pusher_topic(client_id, "" if channel_id == EVERYWHERE else channel_id)


@dataclass(slots=True, eq=False, repr=False)
class PusherConnection:
    """The connection of one web page. A `Peer` and a `Subscriber`."""

    connection: Connection
    _hub: Hub
    _protocol: int | None
    _max_channels: int
    _on_close: Callable[[PusherConnection], None]
    number: int = 0
    """Its number among the connections of the service. Set by `Admission.add`, like `opened_at`."""
    opened_at: int = 0
    """Unix ms by the service's clock."""
    request_count: int = 0
    """Messages received so far."""
    frame_count: int = 0
    """Messages sent so far."""
    _channels: dict[str, Key | None] = field(default_factory=dict)

    @property
    def channels(self) -> Mapping[str, Key | None]:
        """The Pusher channels that the page is subscribed to, each with its topic if it can carry messages."""
        return self._channels

    def opened(self) -> None:
        """Greet the page, or close if its protocol version is not supported."""
        if self._protocol not in PROTOCOLS:
            self._send(_error(4007, f"unsupported protocol version; supported: {PROTOCOLS}"))
            self.connection.close(4007, "unsupported protocol version")
            return
        data = {"socket_id": f"{self.number}.{self.number * 7919 % 1_000_000}", "activity_timeout": ACTIVITY_TIMEOUT}
        self._send(_frame("pusher:connection_established", "", data))

    def received(self, text: bytes | None) -> None:
        """Answer one message; on a malformed one, send an error and keep the connection."""
        self.request_count += 1
        event = ""
        try:
            event, data = _read(text)
            answer = self._act(event, data)
        except BadRequest as error:
            self._answer(event, text, _error(4300, error.detail), error.status, error.reason, error.detail)
            return
        frame = b"" if answer is None else _frame(*answer)
        if answer is not None and answer[2] is _PRIVATE:
            self._answer(event, text, frame, _PRIVATE.status, _PRIVATE.type, _PRIVATE.error)
        else:
            self._answer(event, text, frame)

    def going_away(self) -> None:
        """Close (1001); the page reconnects."""
        self.connection.close(1001, "the service stops")

    def expel(self, reason: str, code: int = CloseCode.POLICY_VIOLATION) -> None:
        """Close because of a limit or a call to close it."""
        self.connection.close(code, reason)

    def refused(self, code: int, reason: str) -> None:
        """Add a close by the service to the journal."""
        journal = self._hub.journal
        if journal.is_on:
            journal.add(close_entry(self.number, self.connection.request_id, None, code, reason))

    def closed(self) -> None:
        for topic in self._channels.values():
            if topic is not None:
                self._hub.unsubscribe(topic, self)
        self._channels.clear()
        self._on_close(self)

    @property
    def is_reachable(self) -> bool:
        return self.connection.is_reachable

    @property
    def label(self) -> str:
        """Its number, for people."""
        return f"socket {self.number} (page)"

    def write(self, frame: bytes, count: int = 1) -> None:
        """Queue messages in one piece."""
        self.frame_count += count
        self.connection.write(frame)

    def _send(self, text: bytes) -> None:
        self.frame_count += 1
        self.connection.send(text)

    def _answer(
        self, event: str, text: bytes | None, answer: bytes, status: int = 200, reason: str = "", detail: str = ""
    ) -> None:
        """Send the answer to a message, if it is not empty, and add both to the journal."""
        if answer:
            self._send(answer)
        if self._hub.journal.is_on:
            context = RequestContext(f"{self.connection.request_id}/{self.request_count}")
            entry = frame_entry(self.number, context, None, event, text or b"", answer, status=status)
            entry.reason, entry.detail = reason, masked_text(detail)
            self._hub.journal.add(entry)

    def _act(self, event: str, data: dict[str, Any]) -> tuple[str, str, object] | None:
        """Do what a message asks; return the event, channel and data of the answer, `None` if it has none."""
        if event == "pusher:ping":
            return "pusher:pong", "", {}
        if event == "pusher:subscribe":
            return self._subscribe(_channel(data))
        if event == "pusher:unsubscribe":
            topic = self._channels.pop(_channel(data), None)
            if topic is not None:
                self._hub.unsubscribe(topic, self)
        elif event != "pusher:pong":
            raise BadRequest("Bad frame", f"event: unknown event {event[:60]!r}; to send an event, use REST")
        return None

    def _subscribe(self, channel: str) -> tuple[str, str, object]:
        if channel.startswith(("private-", "presence-")):
            return "pusher:subscription_error", channel, _PRIVATE
        if len(self._channels) >= self._max_channels and channel not in self._channels:
            raise BadRequest("Too many subscriptions", f"a page may subscribe to at most {self._max_channels} channels")
        topic = topic_of(channel)
        self._channels[channel] = topic
        if topic is not None:
            self._hub.subscribe(topic, self)
            self._hub.note_subscription(topic)
        return "pusher_internal:subscription_succeeded", channel, {}


def _read(text: bytes | None) -> tuple[str, dict[str, Any]]:
    """Parse event and data of a message; `data` may be an object, or JSON in a string."""
    if text is None:
        raise BadRequest("Bad frame", "binary messages are not supported")
    try:
        frame = msgspec.json.decode(text)
        data = frame.get("data") if isinstance(frame, dict) else None
        data = msgspec.json.decode(data) if isinstance(data, str) and data else data
    except (msgspec.MsgspecError, RecursionError):
        raise BadRequest("Bad frame", "the message is not valid JSON") from None
    if not isinstance(frame, dict) or not isinstance(frame.get("event"), str):
        raise BadRequest("Bad frame", "event: must be a string")
    return frame["event"], data if isinstance(data, dict) else {}


def _channel(data: dict[str, Any]) -> str:
    channel = data.get("channel")
    if not isinstance(channel, str) or not 1 <= len(channel) <= _MAX_CHANNEL_LENGTH:
        raise BadRequest("Bad frame", f"data.channel: must have 1 to {_MAX_CHANNEL_LENGTH} characters")
    return channel


def _frame(event: str, channel: str, data: object) -> bytes:
    return msgspec.json.encode(_Frame(event, channel, msgspec.json.encode(data).decode()))


def _error(code: int, message: str) -> bytes:
    """An error message. Its `data` is an object, because clients do not decode it a second time."""
    return msgspec.json.encode(_Frame("pusher:error", data={"code": code, "message": message}))
