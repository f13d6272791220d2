"""The datastream over the socket: updates on `datastream`."""

from __future__ import annotations

from typing import Final

from emulator.callers import CHANNEL_WRITERS
from emulator.engines.shapes import Key
from emulator.features.datastream.service import TARGET, Datastream
from emulator.realtime.action import Message, feed


@feed(TARGET, roles=CHANNEL_WRITERS)
async def datastream_topics(datastream: Datastream, message: Message) -> tuple[Key, ...]:
    """Follow the events of the connection's channel."""
    return (datastream.topic(message.caller, message.channel),)


feeds: Final = (datastream_topics,)
