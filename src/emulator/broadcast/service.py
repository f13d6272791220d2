"""Everything the service promises about broadcasts."""

from __future__ import annotations

from typing import Any

from emulator.broadcast.rules import CHANNEL, WHISPER, Event, check_size, checked_event, topics_heard
from emulator.callers import Caller
from emulator.engines.base import Key
from emulator.errors import BadRequest
from emulator.realtime.updates import Updates


class Broadcasts:
    """Messages under the events' names. Nothing is kept: whoever follows an event now hears it."""

    def __init__(self, updates: Updates) -> None:
        self._updates = updates

    async def send(self, caller: Caller, channel: str | None, event: str, data: Any) -> None:
        """Send to all subscribers in a channel; raises `BadRequest` for a message that is too large."""
        place = _checked_channel(channel)
        checked_event(event)
        check_size(data)
        await self._updates.publish(
            Key("event", caller.client_id, event, place), event, Event(event, data, place, CHANNEL)
        )

    async def whisper(self, caller: Caller, channel: str | None, event: str, data: Any, user_id: str) -> None:
        """Send to one user in a channel, however their id is spelt."""
        place = _checked_channel(channel)
        checked_event(event)
        check_size(data)
        await self._updates.publish(
            Key("event", caller.client_id, event, place, user_id), event, Event(event, data, place, WHISPER)
        )

    def topics(self, caller: Caller, channel: str | None, event: str) -> tuple[Key, ...]:
        """What a subscriber of an event follows."""
        return topics_heard(caller, channel or "", checked_event(event))


def _checked_channel(channel: str | None) -> str:
    if not channel:
        raise BadRequest("Invalid channel", "a broadcast needs a channel: a token that names one")
    return channel
