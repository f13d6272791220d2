"""The Pusher protocol (version 7), by which web pages receive broadcasts. Only public channels; any key will do."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec
from msgspec import Struct

from emulator.core.callers import Caller
from emulator.core.errors import BadRequest, ServiceError
from emulator.core.keys import Key
from emulator.core.observability.entries import close_entry, frame_entry
from emulator.core.observability.metrics import answerable
from emulator.core.observability.request_context import RequestContext
from emulator.realtime import closes, refusals
from emulator.realtime.hub import Hub
from emulator.realtime.web_page_access import PusherAccess, Subscription, pusher_topic
from emulator.realtime.websocket import WebSocket

PREFIX: Final = "twitch.pubsub."
EVERYWHERE: Final = "all"
ACTIVITY_TIMEOUT: Final = 120
"""Seconds of silence before a page pings the service."""
PROTOCOLS: Final = (5, 6, 7)
_MAX_CHANNEL_LENGTH: Final = 200
_SECRETS: Final = frozenset({"auth"})
"""Members of a message that the journal hides."""


_SUBSCRIBE: Final = "pusher:subscribe"


class _Frame(Struct, omit_defaults=True):
    """One message; `data` is JSON inside a JSON string."""

    event: str
    channel: str = ""
    data: Any = None


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

    connection: WebSocket
    _hub: Hub
    _access: PusherAccess
    _protocol: int | None
    _max_channels: int
    _on_close: Callable[[PusherConnection], None]
    _credential: str = field(repr=False)
    """The credential in `?token=`, for subscriptions without their own. Each verifies it again: it may have ended."""
    number: int = 0
    """Its number among the connections of the service. Set by `Admission.add`, like `opened_at`."""
    opened_at: int = 0
    """Unix ms by the service's clock."""
    request_count: int = 0
    """Messages received so far."""
    frame_count: int = 0
    """Messages sent so far."""
    _subscriptions: dict[str, Subscription] = field(default_factory=dict)
    """By Pusher channel."""
    _verifying: asyncio.Task[None] | None = None
    """The check of a credential. Later messages wait for it."""
    _waiting: list[bytes | None] = field(default_factory=list)
    _closed: bool = False

    @property
    def channels(self) -> Mapping[str, Key | None]:
        """The Pusher channels that the page is subscribed to, each with its topic if it can carry messages."""
        return {name: each.topics[0] if each.topics else None for name, each in self._subscriptions.items()}

    @property
    def callers(self) -> Iterable[Caller]:
        """The bearers of the tokens behind the subscriptions."""
        return [each.caller for each in self._subscriptions.values() if each.caller is not None]

    def opened(self) -> None:
        """Send the protocol's first message, or close if the page's protocol version is not supported."""
        if self._protocol not in PROTOCOLS:
            self._send(_error(4007, f"unsupported protocol version; supported: {PROTOCOLS}"))
            self.connection.close(closes.unsupported_protocol())
            return
        data = {"socket_id": f"{self.number}.{self.number * 7919 % 1_000_000}", "activity_timeout": ACTIVITY_TIMEOUT}
        self._send(_frame("pusher:connection_established", "", data))

    def received(self, text: bytes | None) -> None:
        """Handle one message; on a malformed one, send an error and keep the connection."""
        if self._verifying is not None:
            self._waiting.append(text)
            return
        self.request_count += 1
        event = ""
        try:
            event, data = _read(text)
            if event == _SUBSCRIBE:
                self._start_subscription(text, _channel(data), _credential(data))
                return
            answer = self._act(event, data)
        except BadRequest as error:
            self._answer(event, text, _error(4300, error.detail), error)
        else:
            self._answer(event, text, answer)

    async def end_expired(self) -> None:
        """End the subscriptions whose token has expired."""
        for channel, subscription in list(self._subscriptions.items()):
            if self._access.has_expired(subscription):
                self._end(channel, refusals.token_expired())
        self.watch()

    async def recheck(self, client_id: str, channel_id: str) -> None:
        """Verify tokens that belong to links of a channel again; end subscriptions whose token is no longer valid."""
        for channel, subscription in list(self._subscriptions.items()):
            caller = subscription.caller
            if caller and caller.grant.link and (caller.client_id, caller.channel_id) == (client_id, channel_id):
                bearer = await _identify_page(self._access, subscription.credential, self.connection.address)
                if isinstance(bearer, ServiceError) and self._subscriptions.get(channel) is subscription:
                    self._end(channel, bearer)
        self.watch()

    def watch(self) -> None:
        """End each subscription when its token expires."""
        self._access.watch(self, self._subscriptions.values(), self.end_expired)

    def going_away(self) -> None:
        """Close with code 1001, on which the page reconnects."""
        self.connection.close(closes.stopped())

    def expel(self, error: ServiceError) -> None:
        """Close because of a limit or a call to close it."""
        self.connection.close(error)

    def refused(self, error: ServiceError) -> None:
        """Add a close by the service to the journal."""
        self._hub.journal.record(close_entry, self.number, self.connection.request_id, None, error)

    def closed(self) -> None:
        self._closed = True
        for channel in list(self._subscriptions):
            self._forget(channel)
        self.watch()
        self._on_close(self)

    @property
    def is_reachable(self) -> bool:
        return self.connection.is_reachable

    @property
    def has_room(self) -> bool:
        return self.connection.has_room()

    @property
    def label(self) -> str:
        """The page's connection number, as logs and the dashboard show it."""
        return f"socket {self.number} (page)"

    def write(self, frame: bytes, count: int = 1) -> None:
        """Queue messages in one piece."""
        self.frame_count += count
        self.connection.write(frame)

    def _send(self, text: bytes) -> None:
        self.frame_count += 1
        self.connection.send(text)

    def _answer(self, event: str, text: bytes | None, answer: bytes, error: ServiceError | None = None) -> None:
        """Send the reply to a message, if it is not empty, and add both to the journal."""
        if answer:
            self._send(answer)
        context = RequestContext(f"{self.connection.request_id}/{self.request_count}", socket=self.number)
        self._hub.journal.record(frame_entry, context, event, text or b"", answer, error, _SECRETS)

    def _act(self, event: str, data: dict[str, Any]) -> bytes:
        """Handle a message other than a subscription; return the reply, empty if there is none."""
        if event == "pusher:ping":
            return _frame("pusher:pong", "", {})
        if event == "pusher:unsubscribe":
            self._forget(_channel(data))
            self.watch()
        elif event != "pusher:pong":
            raise refusals.unknown_event(event=event[:60])
        return b""

    def _start_subscription(self, text: bytes | None, channel: str, credential: str) -> None:
        """Subscribe to a channel; if the message has a credential, after verifying it."""
        if channel.startswith(("private-", "presence-")):
            self._finish_subscription(text, channel, refusals.private_channel())
            return
        credential = credential or self._credential
        if not credential:
            self._finish_subscription(text, channel, Subscription())
            return
        self.connection.pause()
        self._verifying = asyncio.get_running_loop().create_task(self._verify(text, channel, credential))

    async def _verify(self, text: bytes | None, channel: str, credential: str) -> None:
        bearer = await _identify_page(self._access, credential, self.connection.address)
        self._verifying = None
        if self._closed:
            return
        self._finish_subscription(text, channel, bearer)
        waiting, self._waiting = self._waiting, []
        for each in waiting:
            self.received(each)
        if self._verifying is None:
            self.connection.resume()

    def _finish_subscription(self, text: bytes | None, channel: str, bearer: Subscription | ServiceError) -> None:
        if isinstance(bearer, ServiceError):  # raised here, it would keep the connection until garbage is collected
            self._refuse_subscription(text, channel, bearer)
            return
        try:
            self._subscribe(channel, bearer)
        except ServiceError as error:
            self._refuse_subscription(text, channel, error)
        else:
            self._answer(_SUBSCRIBE, text, _frame("pusher_internal:subscription_succeeded", channel, {}))

    def _refuse_subscription(self, text: bytes | None, channel: str, error: ServiceError) -> None:
        is_malformed = isinstance(error, BadRequest)
        answer = _error(4300, error.detail) if is_malformed else _subscription_error(channel, error)
        self._answer(_SUBSCRIBE, text, answer, error)

    def _subscribe(self, channel: str, bearer: Subscription) -> None:
        """Subscribe to a channel, replacing an earlier subscription to it. Raises `ServiceError`."""
        if self._access.has_expired(bearer):
            raise refusals.token_expired()
        topic = topic_of(channel)
        subscription = self._access.subscription(topic, bearer.caller, bearer.credential)
        if len(self._subscriptions) >= self._max_channels and channel not in self._subscriptions:
            raise refusals.too_many_subscriptions(total=len(self._subscriptions) + 1, limit=self._max_channels)
        self._forget(channel)
        self._subscriptions[channel] = subscription
        for each in subscription.topics:
            self._hub.subscribe(each, self)
        if topic is not None:
            self._hub.note_subscription(topic)
        self.watch()

    def _end(self, channel: str, error: ServiceError) -> None:
        """End a subscription, and send the reason to the page."""
        self._forget(channel)
        self._send(_subscription_error(channel, error))

    def _forget(self, channel: str) -> None:
        subscription = self._subscriptions.pop(channel, None)
        for topic in subscription.topics if subscription else ():
            self._hub.unsubscribe(topic, self)


async def _identify_page(access: PusherAccess, credential: str, address: str) -> Subscription | ServiceError:
    """Return the caller that a page's credential identifies, or the error if the credential is invalid."""
    try:
        return Subscription((), await access.verify(credential, address), credential)
    except ServiceError as error:
        return error
    except Exception as failure:  # else the page would wait for the end of this check, and read nothing more
        return answerable(failure, _SUBSCRIBE, access.recorder)


def _read(text: bytes | None) -> tuple[str, dict[str, Any]]:
    """Parse event and data of a message; `data` may be an object, or JSON in a string."""
    if text is None:
        raise refusals.binary_message()
    try:
        frame = msgspec.json.decode(text)
        data = frame.get("data") if isinstance(frame, dict) else None
        data = msgspec.json.decode(data) if isinstance(data, str) and data else data
    except (msgspec.MsgspecError, RecursionError):
        raise refusals.wrong_message(problem="the message is not valid JSON", needed="a JSON object") from None
    if not isinstance(frame, dict) or not isinstance(frame.get("event"), str):
        raise refusals.wrong_message(problem="event: must be a string", needed="a string as event")
    return frame["event"], data if isinstance(data, dict) else {}


def _channel(data: dict[str, Any]) -> str:
    channel = data.get("channel")
    if not isinstance(channel, str) or not 1 <= len(channel) <= _MAX_CHANNEL_LENGTH:
        needed = f"1 to {_MAX_CHANNEL_LENGTH} characters"
        raise refusals.wrong_message(problem=f"data.channel: must have {needed}", needed=needed)
    return channel


def _credential(data: dict[str, Any]) -> str:
    """Return `<client id> <JWT>`, empty if the message has none. The published SDK sends an empty text."""
    auth = data.get("auth")
    return auth.strip() if isinstance(auth, str) else ""


def _subscription_error(channel: str, error: ServiceError) -> bytes:
    data = {"type": "AuthError", "error": error.detail, "status": error.status}
    return _frame("pusher:subscription_error", channel, data)


def _frame(event: str, channel: str, data: object) -> bytes:
    return msgspec.json.encode(_Frame(event, channel, msgspec.json.encode(data).decode()))


def _error(code: int, message: str) -> bytes:
    """Return an error message of the Pusher protocol.

    Its `data` is an object, because clients do not decode it a second time.
    """
    return msgspec.json.encode(_Frame("pusher:error", data={"code": code, "message": message}))
