"""Everything the service promises about broadcasts."""

from __future__ import annotations

from typing import Any

from msgspec import UNSET

from emulator.callers import CHANNEL_WRITERS, Caller
from emulator.config.environment import Environment
from emulator.engines.base import Key
from emulator.errors import BadRequest, Forbidden
from emulator.features.broadcast.rules import (
    CHANNEL,
    EXTENSION,
    WHISPER,
    WHISPER_TO,
    Event,
    bare_event,
    checked_event,
    checked_target,
    is_packed,
    page_message,
    spellings,
    topics_heard,
)
from emulator.realtime.publisher import Publisher
from emulator.realtime.pusher import broadcast_frame, pusher_topic

EVERYBODY = "broadcast"


class Broadcasts:
    """Messages under the events' names. Nothing is kept: whoever follows an event now hears it.

    Games hear plain JSON over the socket, pages what the published SDK decodes.
    """

    def __init__(self, publisher: Publisher, environment: Environment) -> None:
        self._publisher = publisher
        self._environment = environment

    async def send(
        self, caller: Caller, channel: str | None, event: str, data: Any, *, target: str = EVERYBODY
    ) -> None:
        """Send to all subscribers in a channel, or to one user there; raises `BadRequest` for what cannot be sent."""
        if not channel:
            raise BadRequest("Invalid channel", "a broadcast needs a channel: a token that names one, or user_id")
        await self._publish(caller, channel, self._scoped(caller, event), data, target)

    async def send_everywhere(self, caller: Caller, event: str, data: Any, *, target: str = EVERYBODY) -> None:
        """Send to all subscribers, or to one user, in all channels where the extension is loaded."""
        await self._publish(caller, "", self._scoped(caller, event), data, target)

    async def whisper_self(self, caller: Caller, channel: str | None, event: str, data: Any) -> None:
        """Send to all clients of the caller in the channel that they are watching."""
        await self.send(caller, channel, event, data, target=f"{WHISPER_TO}{caller.opaque_id}")

    async def send_as_page(
        self, caller: Caller, channel: str | None, event: str, data: Any, *, target: str = EVERYBODY
    ) -> None:
        """Pass on what a page of the published SDK sends, whose events come with their full names.

        In sandbox anybody may, as the SDK's development mode does; in production those who may broadcast.
        """
        if self._environment.verifies_tokens and caller.role not in CHANNEL_WRITERS:
            raise Forbidden("role is not authorized", f"the role {caller.role} may not broadcast")
        if not channel:
            raise BadRequest("Invalid channel", "a broadcast needs a channel: a token that names one, or user_id")
        checked_event(bare_event(event, self._environment.name, caller.client_id))
        await self._publish(caller, channel, event, data, target)

    def topics(self, caller: Caller, channel: str | None, event: str) -> tuple[Key, ...]:
        """What a subscriber of an event follows."""
        return topics_heard(caller, channel or "", checked_event(event))

    def _scoped(self, caller: Caller, event: str) -> str:
        """The full name, by which pages tell environments and extensions apart."""
        return f"{self._environment.name}:{caller.client_id}:{checked_event(event)}"

    async def _publish(self, caller: Caller, place: str, event: str, data: Any, target: str) -> None:
        user_id = checked_target(target)
        squeezed = data is not UNSET and is_packed(data)
        users = spellings(user_id) if user_id else ("",)
        name = bare_event(event, self._environment.name, caller.client_id)
        scope = WHISPER if user_id else CHANNEL if place else EXTENSION
        told = Event(name, {} if data is UNSET else data, place, scope)
        # One spelling for games: they follow both.
        await self._publisher.publish(Key("event", caller.client_id, name, place, users[0]), name, told)
        topic = pusher_topic(caller.client_id, place)
        if self._publisher.may_have_subscribers(topic):
            message = page_message(event, data, is_packed=squeezed)
            for user in users:
                heard_as = f"{WHISPER_TO}{user}" if user else EVERYBODY
                await self._publisher.publish_raw(topic, broadcast_frame(topic, heard_as, message))
