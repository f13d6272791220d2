"""The Pusher protocol (version 7), by which web pages receive broadcasts. Only public channels; any key will do.

Which topics a page may subscribe to, and until when, is ruling B7.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import msgspec
from msgspec import Struct

from emulator.core.callers import Caller
from emulator.core.clock import Clock
from emulator.core.errors import BadRequest, ServiceError
from emulator.core.keys import NEVER, Key
from emulator.core.observability.entries import frame_entry
from emulator.core.observability.metrics import Metrics, error_for_client
from emulator.core.observability.request_context import RequestContext
from emulator.core.scheduler import Callback, Scheduler
from emulator.realtime import closes, refusals
from emulator.realtime.peer import QueuedPeer

WEB_PAGE = "page"
"""The kind of the topics of pages."""
_SUBSCRIBE = "pusher:subscribe"
ANY_USER = "\t"
"""The user of the topics with the whispers to every user. No user has this id: targets of whispers are printable."""
TOPIC_PREFIX = "twitch.pubsub."
ALL_CHANNELS = "all"
ACTIVITY_TIMEOUT = 120
"""Seconds of silence before a page pings the service."""
PROTOCOL_VERSIONS = (5, 6, 7)
_MAX_CHANNEL_LENGTH = 200
_SECRET_MEMBERS = frozenset({"auth"})
"""Members of a message that the journal hides."""


class _Frame(Struct, omit_defaults=True):
    """One message; `data` is JSON inside a JSON string."""

    event: str
    channel: str = ""
    data: Any = None


def broadcast_frame(topic: Key, event: str, message: str) -> bytes:
    """Serialize a broadcast to a topic's subscribers."""
    channel = f"{TOPIC_PREFIX}{topic.owner}.{topic.channel or ALL_CHANNELS}"
    return _encode_frame(event, channel, {"message": message})


def parse_topic(channel: str) -> Key | None:
    """The topic of a Pusher channel; `None` if it is not a broadcast channel."""
    client_id, dot, channel_id = channel.removeprefix(TOPIC_PREFIX).rpartition(".")
    if not channel.startswith(TOPIC_PREFIX) or not dot or not client_id or not channel_id:
        return None
    return pusher_topic(client_id, "" if channel_id == ALL_CHANNELS else channel_id)


class Subscription(NamedTuple):
    """A page's subscription to one Pusher channel."""

    topics: tuple[Key, ...] = ()
    """The topic of the channel, then the topics of whispers; empty if the channel can carry no messages."""
    caller: Caller | None = None
    credential: str = ""
    """The credential that verified the caller."""
    ends_at: int = NEVER
    """When the caller's token expires, in Unix ms."""


def pusher_topic(client_id: str, channel_id: str) -> Key:
    """The topic of an extension's pages in one channel, or in all channels if `channel_id` is empty."""
    return Key(WEB_PAGE, client_id, "", channel_id)


def whisper_topic(client_id: str, channel_id: str, *user_ids: str) -> Key:
    """Return the topic of whispers to one user, given by all ids of the user.

    Pages that receive all whispers also get it.
    """
    return pusher_topic(client_id, channel_id)._replace(user="\n".join([*user_ids, ANY_USER]))


@dataclass(eq=False, repr=False)
class PusherAccess:
    """The rights of all pages of a service."""

    verify: Callable[[str, str], Awaitable[Caller]]
    """Verifies `<client id> <JWT>` from a network address. Raises `ServiceError`."""
    is_open: bool
    """Whether pages need no credential, as in the sandbox."""
    _clock: Clock
    _scheduler: Scheduler
    _leeway: int
    """Ms for which an expired token is still accepted."""
    recorder: Metrics
    """Counts failures of storage."""

    async def identify(self, credential: str, address: str) -> Subscription | ServiceError:
        """Return the caller that a page's credential identifies, or the error if the credential is invalid."""
        try:
            caller = await self.verify(credential, address)
        except ServiceError as error:
            return error
        except Exception as failure:  # else the page would get no reply
            return error_for_client(failure, _SUBSCRIBE, self.recorder)
        ends_at = NEVER if caller.expires_at is None else caller.expires_at + self._leeway
        return Subscription((), caller, credential, ends_at)

    def allowed_subscription(self, topic: Key | None, bearer: Subscription) -> Subscription:
        """Return the access of a page to a topic. Raises `Unauthorized` and `Forbidden`.

        Without a caller, a page of the sandbox receives the whispers to every user.
        """
        caller = bearer.caller
        if not self.is_open:
            if caller is None:
                raise refusals.no_credential()
            own = topic is not None and topic.owner == caller.client_id
            if topic is None or not own or topic.channel not in ("", caller.channel_id):
                raise refusals.other_topic()
        if topic is None:
            return bearer
        users = [ANY_USER] if caller is None else sorted(filter(str.isprintable, caller.ids))
        return bearer._replace(topics=(topic, *(topic._replace(user=user) for user in users)))

    def has_expired(self, subscription: Subscription) -> bool:
        """Whether the token of a subscription has expired."""
        return subscription.ends_at <= self._clock.now()

    def watch_expiry(self, page: object, subscriptions: Iterable[Subscription], callback: Callback) -> None:
        """Run `callback` when the first of a page's tokens expires. It replaces the page's earlier callback."""
        ends_at = min((each.ends_at for each in subscriptions), default=NEVER)
        if ends_at < NEVER:
            self._scheduler.schedule(page, ends_at, callback)
        else:
            self._scheduler.cancel(page)


@dataclass(slots=True, eq=False, repr=False)
class PusherConnection(QueuedPeer):
    """The connection of one web page."""

    _access: PusherAccess
    _protocol: int | None
    _max_channels: int
    _credential: str = field(repr=False)
    """The credential in `?token=`, for subscriptions without their own. Each verifies it again: it may have ended."""
    _subscriptions: dict[str, Subscription] = field(default_factory=dict)
    """By Pusher channel."""

    @property
    def channels(self) -> Mapping[str, Key | None]:
        """The Pusher channels that the page is subscribed to, each with its topic if it can carry messages."""
        return {name: each.topics[0] if each.topics else None for name, each in self._subscriptions.items()}

    @property
    def callers(self) -> Iterable[Caller]:
        """The bearers of the tokens behind the subscriptions."""
        return [each.caller for each in self._subscriptions.values() if each.caller is not None]

    def on_open(self) -> None:
        """Send the protocol's first message, or close if the page's protocol version is not supported."""
        if self._protocol not in PROTOCOL_VERSIONS:
            self.send(_error_frame(4007, f"unsupported protocol version; supported: {PROTOCOL_VERSIONS}"))
            self.connection.close(closes.unsupported_protocol())
            return
        data = {"socket_id": f"{self.number}.{self.number * 7919 % 1_000_000}", "activity_timeout": ACTIVITY_TIMEOUT}
        self.send(_encode_frame("pusher:connection_established", "", data))

    async def end_expired(self) -> None:
        """End the subscriptions whose token has expired."""
        for channel, subscription in list(self._subscriptions.items()):
            if self._access.has_expired(subscription):
                self._end_subscription(channel, refusals.token_expired())
        self.watch_expiry()

    async def recheck_links(self, client_id: str, channel_id: str) -> None:
        """Verify tokens that belong to links of a channel again; end subscriptions whose token is no longer valid."""
        for channel, subscription in list(self._subscriptions.items()):
            caller = subscription.caller
            if caller and caller.grant.link and (caller.client_id, caller.channel_id) == (client_id, channel_id):
                bearer = await self._access.identify(subscription.credential, self.connection.address)
                if isinstance(bearer, ServiceError) and self._subscriptions.get(channel) is subscription:
                    self._end_subscription(channel, bearer)
        self.watch_expiry()

    def watch_expiry(self) -> None:
        """End each subscription when its token expires."""
        self._access.watch_expiry(self, self._subscriptions.values(), self.end_expired)

    def on_close(self) -> None:
        self._closed = True
        for channel in list(self._subscriptions):
            self._forget_subscription(channel)
        self.watch_expiry()
        self._on_close(self)

    @property
    def has_room(self) -> bool:
        return self.connection.has_room()

    @property
    def label(self) -> str:
        """The page's connection number, as logs and the dashboard show it."""
        return f"socket {self.number} (page)"

    async def _handle_message(self, text: bytes | None) -> None:
        """Handle one message; on a malformed one, send an error and keep the connection."""
        self.request_count += 1
        event = channel = ""
        try:
            event, data = _parse_message(text)
            if event != _SUBSCRIBE:
                self._send_reply(event, text, self._handle_other(event, data))
                return
            channel, credential = _channel_in(data), _credential(data) or self._credential
            if channel.startswith(("private-", "presence-")):
                raise refusals.private_channel()
            bearer: Subscription | ServiceError = Subscription()
            if credential:
                bearer = await self._access.identify(credential, self.connection.address)
            if isinstance(bearer, ServiceError):  # raised here, it would keep the connection until garbage is collected
                self._send_refusal(event, text, channel, bearer)
                return
            self._subscribe(channel, bearer)
        except ServiceError as error:
            self._send_refusal(event, text, channel, error)
        else:
            self._send_reply(event, text, _encode_frame("pusher_internal:subscription_succeeded", channel, {}))

    def _send_refusal(self, event: str, text: bytes | None, channel: str, error: ServiceError) -> None:
        is_malformed = isinstance(error, BadRequest)
        answer = _error_frame(4300, error.detail) if is_malformed else _subscription_error(channel, error)
        self._send_reply(event, text, answer, error)

    def _send_reply(self, event: str, text: bytes | None, answer: bytes, error: ServiceError | None = None) -> None:
        """Send the reply to a message, if it is not empty, and add both to the journal."""
        if answer:
            self.send(answer)
        context = RequestContext(f"{self.connection.request_id}/{self.request_count}", socket=self.number)
        self._hub.journal.record(frame_entry, context, event, text or b"", answer, error, _SECRET_MEMBERS)

    def _handle_other(self, event: str, data: dict[str, Any]) -> bytes:
        """Handle a message other than a subscription; return the reply, empty if there is none."""
        if event == "pusher:ping":
            return _encode_frame("pusher:pong", "", {})
        if event == "pusher:unsubscribe":
            self._forget_subscription(_channel_in(data))
            self.watch_expiry()
        elif event != "pusher:pong":
            raise refusals.unknown_event(event=event[:60])
        return b""

    def _subscribe(self, channel: str, bearer: Subscription) -> None:
        """Subscribe to a channel, replacing an earlier subscription to it. Raises `ServiceError`."""
        if self._access.has_expired(bearer):
            raise refusals.token_expired()
        topic = parse_topic(channel)
        subscription = self._access.allowed_subscription(topic, bearer)
        if len(self._subscriptions) >= self._max_channels and channel not in self._subscriptions:
            raise refusals.too_many_subscriptions(total=len(self._subscriptions) + 1, limit=self._max_channels)
        if self._closed:
            return
        self._forget_subscription(channel)
        self._subscriptions[channel] = subscription
        for each in subscription.topics:
            self._hub.subscribe(each, self)
        if topic is not None:
            self._hub.note_subscription(topic)
        self.watch_expiry()

    def _end_subscription(self, channel: str, error: ServiceError) -> None:
        """End a subscription, and send the reason to the page."""
        self._forget_subscription(channel)
        self.send(_subscription_error(channel, error))

    def _forget_subscription(self, channel: str) -> None:
        subscription = self._subscriptions.pop(channel, None)
        for topic in subscription.topics if subscription else ():
            self._hub.unsubscribe(topic, self)


def _parse_message(text: bytes | None) -> tuple[str, dict[str, Any]]:
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


def _channel_in(data: dict[str, Any]) -> str:
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
    return _encode_frame("pusher:subscription_error", channel, data)


def _encode_frame(event: str, channel: str, data: object) -> bytes:
    return msgspec.json.encode(_Frame(event, channel, msgspec.json.encode(data).decode()))


def _error_frame(code: int, message: str) -> bytes:
    """Return an error message of the Pusher protocol.

    Its `data` is an object, because clients do not decode it a second time.
    """
    return msgspec.json.encode(_Frame("pusher:error", data={"code": code, "message": message}))
