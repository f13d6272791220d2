"""Everything the service promises about the datastream: what a page posts, the channel's games hear."""

from __future__ import annotations

from typing import Any, Final

from msgspec import Struct

from emulator.callers import Caller
from emulator.clock import SECOND, Clock
from emulator.engines.base import Key
from emulator.errors import BadRequest
from emulator.realtime.publisher import Publisher

TARGET: Final = "datastream"


class StreamEvent(Struct):
    """One event, and when it came, in Unix seconds."""

    event: Any
    timestamp: int


class StreamEvents(Struct):
    """What subscribers are told."""

    events: list[StreamEvent]


class Datastream:
    """Events from a channel's pages to its games. Nothing is kept."""

    def __init__(self, clock: Clock, publisher: Publisher) -> None:
        self._clock = clock
        self._publisher = publisher

    async def post(self, caller: Caller, channel: str | None, event: Any) -> None:
        """Hand an event to the games that follow; in the order in which events came."""
        told = StreamEvents([StreamEvent(event, self._clock.now() // SECOND)])
        await self._publisher.publish(self.topic(caller, channel), TARGET, told)

    def topic(self, caller: Caller, channel: str | None) -> Key:
        """What subscribers follow."""
        if not channel:
            raise BadRequest("Invalid channel", "the datastream needs a channel: a token that names one")
        return Key("datastream", caller.client_id, "", channel)
