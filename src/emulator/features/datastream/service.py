"""Sends events that pages post to the games of their channel."""

from __future__ import annotations

from typing import Any, Final

from msgspec import Struct

from emulator.callers import Caller, required_channel
from emulator.clock import SECOND, Clock
from emulator.engines.shapes import Key
from emulator.realtime.publisher import Publisher

TARGET: Final = "datastream"


class StreamEvent(Struct):
    """One event, with its arrival in Unix seconds."""

    event: Any
    timestamp: int


class StreamEvents(Struct):
    """The data of an update."""

    events: list[StreamEvent]


class Datastream:
    """Events from a channel's pages to its games, in order of arrival. Nothing is stored."""

    def __init__(self, clock: Clock, publisher: Publisher) -> None:
        self._clock = clock
        self._publisher = publisher

    async def post(self, caller: Caller, channel: str | None, event: Any) -> None:
        """Send an event to the channel's subscribers. Raises `BadRequest` if there is no channel."""
        update = StreamEvents([StreamEvent(event, self._clock.now() // SECOND)])
        await self._publisher.publish(self.topic(caller, channel), TARGET, update)

    def topic(self, caller: Caller, channel: str | None) -> Key:
        """Return the topic of the channel's games. Raises `BadRequest` if there is no channel."""
        return Key("datastream", caller.client_id, "", required_channel(channel, "the datastream"))
