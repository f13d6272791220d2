"""Limits, targets and encoding of broadcasts (rulings B2, B3, X8); publishing to games and pages; and the automatic
events of pages: changes of stores and polls, as the published SDK documents them (ruling B5).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import Any

import msgspec
from msgspec import UNSET, Struct

from emulator.contract.compression import compress
from emulator.contract.limits import MAX_MESSAGE_BYTES, MAX_UNCOMPRESSED_BYTES, MAX_USER_LENGTH
from emulator.core.callers import CHANNEL_WRITERS, Caller, required_channel, role_error
from emulator.core.changes import Change, Changes
from emulator.core.environment import Environment
from emulator.core.errors import BadRequest, Facts, refusal
from emulator.core.extensions import Extensions
from emulator.core.keys import Key
from emulator.core.observability.facts import NAMED, UNHEARD, UNSENT, notice
from emulator.core.parity import ROLE, set_verdict
from emulator.core.wire import json_codec
from emulator.core.wire.refusals import checked_text
from emulator.features.directory import Directory
from emulator.realtime.faulty_messages import FaultyBroadcasts
from emulator.realtime.publisher import Publisher
from emulator.realtime.web_page_connection import WEB_PAGE, broadcast_frame, pusher_topic, whisper_topic

_SEND_LESS = "Send less; `extcli broadcast size` measures a message."


@refusal(BadRequest, "Invalid target", "B3", "The target of the broadcast is invalid",
         "Send to all, or to one user: `extcli broadcast send EVENT DATA --to USER`.")  # fmt: skip
def no_target(*, target: str) -> Facts:
    whisper = f"{WHISPER_PREFIX}<user id>"
    detail = f"target: {target!r} is neither {BROADCAST!r} nor '{whisper}'"
    return Facts(detail, f"target {target!r}", f"{BROADCAST}, or {whisper}")


@refusal(BadRequest, "Message too large", rule="B2", title="The message is too large", next_step=_SEND_LESS)
def message_too_large(*, size: int, compressed: int, limit: int, is_compressed: bool) -> Facts:
    sizes = f"{size} bytes of compact JSON, {compressed} bytes compressed"
    which, needed = ("", ", as JSON or compressed") if is_compressed else (" before compression", " of JSON")
    return Facts(f"data: {sizes}; the limit{which} is {limit}", sizes, f"at most {limit} bytes{needed}")


@refusal(BadRequest, "Too many ids specified", "B3", "The message goes to too many users",
         "Split the users over several messages.")  # fmt: skip
def too_many_recipients(*, count: int) -> Facts:
    detail = f"data.ids: {count} ids; the limit is {MAX_WHISPERS}"
    return Facts(detail, f"{count} ids", f"at most {MAX_WHISPERS} ids")


BEST_COMPRESSION, FAST_COMPRESSION = 9, 6
"""Levels of compression. 64 KiB may take 0.2 s at the best level, and a twentieth of that at the fast one."""
MAX_WHISPERS = 1_000
"""Users in one request to whisper to."""
MAX_EVENT_LENGTH = 256
BROADCAST = "broadcast"
"""The target for all subscribers."""
WHISPER_PREFIX = "whisper-"


class Event(Struct):
    """The data of an update for subscribers of an event."""

    event: str
    data: Any
    channel_id: str
    """Empty for an event of the whole extension."""
    scope: str
    """`channel`, `extension` or `whisper`."""


def checked_event(event: str, name: str = "event") -> str:
    """Return the event's name, the member `name`; raise `BadRequest` unless it has 1 to 256 printable characters."""
    return checked_text(event, MAX_EVENT_LENGTH, reason="Invalid event", name=name)


def whisper_targets(user_ids: list[str]) -> list[str]:
    """Return a target for each user, without duplicates. Raises `BadRequest` for over 1,000."""
    if len(user_ids) > MAX_WHISPERS:
        raise too_many_recipients(count=len(user_ids))
    return [f"{WHISPER_PREFIX}{user_id}" for user_id in dict.fromkeys(user_ids)]


def user_of_target(target: str) -> str:
    """Return the user of a whisper, or an empty string for `broadcast`. Raises `BadRequest` for any other target."""
    if target == BROADCAST:
        return ""
    user_id = target.removeprefix(WHISPER_PREFIX)
    if user_id == target or not user_id or len(user_id) > MAX_USER_LENGTH or not user_id.isprintable():
        raise no_target(target=target[:40])
    return user_id


def needs_compression(text: bytes, level: int = BEST_COMPRESSION) -> bool:
    """Whether pages receive this compact JSON compressed: over 4,096 bytes (ruling B2). Raises `BadRequest`."""
    if len(text) <= MAX_MESSAGE_BYTES:
        return False
    size, short = len(text), len(compress(text, level))
    if size > MAX_UNCOMPRESSED_BYTES:
        raise message_too_large(size=size, compressed=short, limit=MAX_UNCOMPRESSED_BYTES, is_compressed=False)
    if short > MAX_MESSAGE_BYTES:
        raise message_too_large(size=size, compressed=short, limit=MAX_MESSAGE_BYTES, is_compressed=True)
    return True


class Envelope(Struct, omit_defaults=True):
    """A message as the published SDK wraps it; `event` is the full name."""

    event: str
    data: Any = UNSET


def encode_for_page(event: str, data: object, is_long: bool, level: int = BEST_COMPRESSION) -> str:
    """Encode a message as the published SDK decodes it: JSON, or base64 of zlib. `event` is the full name."""
    text = json_codec.encode(Envelope(event, data))
    return (compress(text, level) if is_long else text).decode()


def full_event_name(environment: str, client_id: str, event: str) -> str:
    """Return the name of an event as pages know it."""
    return f"{environment}:{client_id}:{event}"


_PAGE_EVENT = "page_event"
"""The kind of the messages between nodes."""
_MAX_WARNINGS = 1_000
_log = logging.getLogger("emulator")


@dataclass(eq=False, repr=False)
class _OutgoingBroadcast:
    """What is sent to each user, or to all."""

    of: Key
    update: Event
    """What games receive."""
    encode: Callable[[], str]
    """Returns what pages receive."""
    is_long: bool
    _message: str = ""

    async def message(self) -> str:
        """Return what pages receive, encoded once."""
        if not self._message:
            # A long one in a thread, so that other requests are answered meanwhile.
            self._message = await asyncio.to_thread(self.encode) if self.is_long else self.encode()
        return self._message


@dataclass(eq=False, repr=False)
class Broadcasts:
    """Sends events to the current subscribers. Nothing is stored.

    Games receive plain JSON over the socket; pages receive the encoding that the published SDK decodes. All methods
    that send raise `BadRequest` for an invalid event, target or message size.
    """

    _publisher: Publisher
    _directory: Directory
    _environment: Environment
    _changes: Changes
    _late: FaultyBroadcasts

    async def send(self, caller: Caller, channel_id: str, event: str, data: Any, *targets: str, full: str = "") -> None:
        """Send to all subscribers in a channel, or to users there; in all channels of the extension, if it is empty.

        `full` is the event's name as pages receive it, unless that follows from `event`.
        """
        checked_event(event)
        named = [user_of_target(target) for target in targets]
        notice(NAMED, *(Key("user", caller.client_id, user) for user in named))
        notice(NAMED, Key("channel", caller.client_id, channel_id))
        is_whisper = named != [""]
        users = await self._directory.aliases(caller.client_id, named) if is_whisper else [("",)]
        text = b"" if data is UNSET else json_codec.encode(data)
        is_long = len(text) > MAX_MESSAGE_BYTES and await asyncio.to_thread(needs_compression, text)
        full = full or full_event_name(self._environment.name, caller.client_id, event)
        scope = "whisper" if is_whisper else "channel" if channel_id else "extension"
        update = Event(event, {} if data is UNSET else data, channel_id, scope)
        of = Key("event", caller.client_id, event, channel_id)
        sending = _OutgoingBroadcast(of, update, partial(encode_for_page, full, data, is_long), is_long)
        drop = partial(self._publisher.record_undelivered, of, event, update)
        await self._late.send(caller, of, partial(self._send, sending, users), drop)
        self._changes.note(Change(of, scope if users else "", caller.opaque_id))

    async def _send(self, sending: _OutgoingBroadcast, users: Sequence[tuple[str, ...]]) -> None:
        for spelled in users:
            await self._send_to_games(sending, spelled)
            await self._send_to_pages(sending, spelled)
            if len(users) > 1:
                await asyncio.sleep(0)  # let other requests run

    async def _send_to_games(self, sending: _OutgoingBroadcast, spelled: tuple[str, ...]) -> None:
        to = sending.of._replace(user="\n".join(spelled))
        if not self._publisher.hub.has_subscribers(to):
            notice(UNHEARD, sending.of)
            self._publisher.record_undelivered(to, to.name, sending.update)
        await self._publisher.publish(to, to.name, sending.update)

    async def _send_to_pages(self, sending: _OutgoingBroadcast, spelled: tuple[str, ...]) -> None:
        of = sending.of
        topic = pusher_topic(of.owner, of.channel or "")
        if sending.update.scope == "whisper":
            topic = whisper_topic(of.owner, of.channel or "", *spelled)
        if self._publisher.may_have_subscribers(topic):
            message = await sending.message()
            for user in spelled:
                pusher_event = f"{WHISPER_PREFIX}{user}" if user else BROADCAST
                await self._publisher.publish_raw(topic, broadcast_frame(topic, pusher_event, message))

    async def send_as_page(self, caller: Caller, channel: str | None, full: str, data: Any, target: str) -> None:
        """Send a message of the published SDK, whose event has its full name.

        In sandbox every role may, as the SDK expects. In production, raises `Forbidden` for roles without that right.
        """
        if caller.role not in CHANNEL_WRITERS:
            if self._environment.is_strict:
                raise role_error(caller, CHANNEL_WRITERS, "broadcast")
            set_verdict(ROLE)
        channel_id = required_channel(channel, "a broadcast")
        event = full.removeprefix(full_event_name(self._environment.name, caller.client_id, ""))
        await self.send(caller, channel_id, event, data, target, full=full)

    def topics(self, caller: Caller, channel: str | None, event: str) -> tuple[Key, ...]:
        """Return the topics of a subscriber to an event; `*` means all events. Raises `BadRequest`.

        They are the event in the channel, in the extension, and whispered to the caller.
        """
        key = Key("event", caller.client_id, checked_event(event))
        notice(UNSENT, key._replace(channel=channel))
        users = ["", *sorted(caller.ids)]
        places = product(users, (channel or "", ""))
        return tuple(key._replace(channel=where, user=user) for user, where in places)


@dataclass(eq=False, repr=False)
class PageEvents:
    """Sends events to the pages of an extension in a channel, or in all channels.

    `of` is the key of the record that has changed. Its channel is the pages' channel; empty means the topic of all
    channels. Its owner is the extension; empty means every extension with pages in the channel, because they share the
    store. `text` is the event's data as JSON. Data over the size limit of a broadcast is not sent; the log says so
    once.
    """

    _publisher: Publisher
    _environment: Environment
    _extensions: Extensions
    _enabled: bool

    def __post_init__(self) -> None:
        self._warned: set[tuple[str, str]] = set()
        self._publisher.on_message(_PAGE_EVENT, lambda key, text: self.deliver(key, key.name, text))

    def has_listeners(self, of: Key) -> bool:
        """Whether pages that receive these events are connected to this node."""
        return self._enabled and self._publisher.hub.has_topics(WEB_PAGE, of.channel) and bool(self._topics(of))

    async def publish(self, of: Key, event: str, text: bytes) -> None:
        """Send an event to the pages of all nodes. An `EngineError` is only logged, because the change is saved."""
        if self._enabled:
            await self._publisher.try_publish_raw(Key(_PAGE_EVENT, of.owner, event, of.channel), text)

    def deliver(self, of: Key, event: str, text: bytes) -> None:
        """Send an event to the pages of this node."""
        topics = self._topics(of)
        if not topics:
            return
        try:
            compress = needs_compression(text, FAST_COMPRESSION)
        except BadRequest as error:
            warning = topics[0].owner, event
            if warning not in self._warned and len(self._warned) < _MAX_WARNINGS:
                self._warned.add(warning)
                _log.warning("pages of %r do not receive %r: %s", *warning, error.detail)
            return
        for topic in topics:
            name = full_event_name(self._environment.name, topic.owner, event)
            message = encode_for_page(name, msgspec.Raw(text), compress, FAST_COMPRESSION)
            self._publisher.hub.deliver(topic, broadcast_frame(topic, BROADCAST, message))

    def _topics(self, of: Key) -> list[Key]:
        if of.owner:
            topic = pusher_topic(of.owner, of.channel or "")
            return [topic] if self._publisher.hub.has_subscribers(topic) else []
        # A page may subscribe under any client id, so only real ones count.
        topics = self._publisher.hub.topics(WEB_PAGE, of.channel)
        return [topic for topic in topics if self._extensions.admits(topic.owner)]
