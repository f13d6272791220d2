"""Publishes broadcasts to games and pages."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, Protocol, TypeVar

from msgspec import UNSET

from emulator.callers import CHANNEL_WRITERS, Caller, required_channel, role_error
from emulator.changes import Change, Changes
from emulator.config.environment import Environment
from emulator.engines.shapes import Key
from emulator.features.broadcast.rules import (
    BROADCAST,
    WHISPER_PREFIX,
    Event,
    checked_event,
    encode_for_page,
    full_name,
    needs_compression,
    strip_prefix,
    subscribed_topics,
    targets_of,
    user_of_target,
)
from emulator.hints import Hints
from emulator.parity.service import ROLE, note
from emulator.realtime.publisher import Publisher
from emulator.realtime.web_page_access import pusher_topic, whisper_topic
from emulator.realtime.web_page_connection import broadcast_frame
from emulator.wire import json_codec

T = TypeVar("T")

_LATELY: Final = 200
"""Broadcasts that are looked at for events that were sent."""
_LONG: Final = 8 * 1024
"""Bytes of JSON that are compressed in a thread, so that other requests are answered meanwhile."""


class Users(Protocol):
    """The directory of users."""

    async def aliases(self, client_id: str, users: Sequence[str]) -> Sequence[tuple[str, ...]]:
        """Return all ids (shared and opaque) of each distinct user, the spelling from `users` first."""


class Disturb(Protocol):
    """Sends a broadcast, or applies a fault that loses, delays or repeats it."""

    async def __call__(
        self, caller: Caller, of: Key, send: Callable[[], Awaitable[None]], lose: Callable[[], None]
    ) -> None:
        """Call `send` once, twice, later or not at all, as faults decide.

        `lose` records that the event `of` was not sent.
        """


@dataclass(eq=False, repr=False)
class Broadcasts:
    """Sends events to the current subscribers. Nothing is stored.

    Games receive plain JSON over the socket; pages receive the encoding that the published SDK decodes. All methods
    that send raise `BadRequest` for an invalid event, target or message size.
    """

    _publisher: Publisher
    _users: Users
    _environment: Environment
    _changes: Changes
    _disturb: Disturb
    _hints: Hints

    async def send(
        self, caller: Caller, channel: str | None, event: str, data: Any, *, target: str = BROADCAST
    ) -> None:
        """Send to all subscribers in a channel, or to one user there."""
        await self._publish(
            caller, required_channel(channel, "a broadcast"), self._full_name(caller, event), data, target
        )

    async def whisper(self, caller: Caller, channel: str | None, event: str, data: Any, *, user_ids: list[str]) -> None:
        """Send to up to 1,000 users in a channel."""
        channel_id = required_channel(channel, "a broadcast")
        await self._publish(caller, channel_id, self._full_name(caller, event), data, *targets_of(user_ids))

    async def send_extension_wide(self, caller: Caller, event: str, data: Any, *, target: str = BROADCAST) -> None:
        """Send to all subscribers in all channels of the extension, or to one user."""
        await self._publish(caller, "", self._full_name(caller, event), data, target)

    async def whisper_self(self, caller: Caller, channel: str | None, event: str, data: Any) -> None:
        """Send to all of the caller's clients in the channel."""
        await self.send(caller, channel, event, data, target=f"{WHISPER_PREFIX}{caller.opaque_id}")

    async def send_as_page(
        self, caller: Caller, channel: str | None, event: str, data: Any, *, target: str = BROADCAST
    ) -> None:
        """Send a message of the published SDK, whose event has its full name.

        In sandbox every role may, as the SDK expects. In production, raises `Forbidden` for roles without that right.
        """
        if caller.role not in CHANNEL_WRITERS:
            if self._environment.verifies_tokens:
                raise role_error(caller.role, CHANNEL_WRITERS, "broadcast")
            note(ROLE)
        channel_id = required_channel(channel, "a broadcast")
        checked_event(strip_prefix(event, self._environment.name, caller.client_id))
        await self._publish(caller, channel_id, event, data, target)

    def name_is_default(self, event: str) -> None:
        """Point out to the caller that the request named no event."""
        self._hints.default_event(event)

    def topics(self, caller: Caller, channel: str | None, event: str) -> tuple[Key, ...]:
        """Return the topics of a subscriber to an event; `*` means all events. Raises `BadRequest`."""
        self._hints.event(
            event, partial(self._recently_sent_events, caller.client_id, channel), "nothing has been sent here as"
        )
        return subscribed_topics(caller, channel or "", checked_event(event))

    def _recently_sent_events(self, client_id: str, channel: str | None) -> Iterator[str]:
        """Yield the names of events that were recently sent in a channel, or in all channels."""
        for change in reversed(self._changes.latest("event", _LATELY)):
            if change.key.owner == client_id and change.key.channel in ("", channel):
                yield change.key.name

    def _subscribed_events(self, client_id: str, channel_id: str) -> Iterator[str]:
        """Yield the names of the events that sockets listen to in a channel; in all if `channel_id` is empty."""
        for topic in self._publisher.hub.topics("event", channel_id):
            if topic.owner == client_id:
                yield topic.name

    def _full_name(self, caller: Caller, event: str) -> str:
        return full_name(self._environment.name, caller.client_id, checked_event(event))

    async def _publish(self, caller: Caller, channel_id: str, event: str, data: Any, *targets: str) -> None:
        named = [user_of_target(target) for target in targets]
        users = [("",)] if named == [""] else await self._users.aliases(caller.client_id, named)
        text = b"" if data is UNSET else json_codec.encode(data)
        in_thread = len(text) > _LONG
        compress = await _run(needs_compression, text, in_thread=in_thread)
        name = strip_prefix(event, self._environment.name, caller.client_id)
        of = Key("event", caller.client_id, name, channel_id)
        scope = "whisper" if named != [""] else "channel" if channel_id else "extension"
        update = Event(name, {} if data is UNSET else data, channel_id, scope)

        async def send() -> None:
            message = ""
            for spelled in users:
                to = of._replace(user="\n".join(spelled))
                if not self._publisher.hub.has_subscribers(to):
                    self._hints.event(
                        name, partial(self._subscribed_events, caller.client_id, channel_id), "nothing listens to"
                    )
                    self._publisher.record_undelivered(to, name, update)
                await self._publisher.publish(to, name, update)
                topic = pusher_topic(caller.client_id, channel_id)
                if scope == "whisper":
                    topic = whisper_topic(caller.client_id, channel_id, *spelled)
                if self._publisher.may_have_subscribers(topic):
                    message = message or await _run(encode_for_page, event, data, compress, in_thread=in_thread)
                    for user in spelled:
                        pusher_event = f"{WHISPER_PREFIX}{user}" if user else BROADCAST
                        await self._publisher.publish_raw(topic, broadcast_frame(topic, pusher_event, message))
                if len(users) > 1:
                    await asyncio.sleep(0)  # let other requests run

        await self._disturb(caller, of, send, lambda: self._publisher.record_undelivered(of, name, update))
        self._changes.note(Change(of, scope if users else "", caller.opaque_id))


async def _run(work: Callable[..., T], *args: Any, in_thread: bool) -> T:
    return await asyncio.to_thread(work, *args) if in_thread else work(*args)
