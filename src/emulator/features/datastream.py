"""The datastream: events from pages to the games of their channel."""

from __future__ import annotations

from functools import partial
from typing import Any

from emulator.contract.limits import MAX_MESSAGE_BYTES
from emulator.core.callers import ANYONE, CHANNEL_WRITERS, EXTENSION_WRITERS, Caller, required_channel
from emulator.core.clock import SECOND, Clock
from emulator.core.errors import BadRequest, Facts, TooManyRequests, refusal
from emulator.core.keys import Key
from emulator.core.limits import RateLimit, whole_seconds
from emulator.core.parity import CALLER_RATE, ProductionCheck
from emulator.core.settings import Settings
from emulator.core.wire import json_codec
from emulator.http.endpoint import CHANNEL, Call, Nothing, endpoint
from emulator.realtime.action import Message, feed
from emulator.realtime.publisher import Publisher


@refusal(BadRequest, "Message too large", "gaps: Limits", "The event is too large for the datastream",
         "Send less, or keep the data in a store: `extcli state set`.")  # fmt: skip
def event_too_large(*, size: int) -> Facts:
    detail = f"event: {size} bytes of compact JSON; the limit is {MAX_MESSAGE_BYTES}"
    return Facts(detail, f"{size} bytes of compact JSON", f"at most {MAX_MESSAGE_BYTES} bytes")


@refusal(TooManyRequests, "Too many requests", "gaps: Limits", "The caller sends too many bytes of events",
         "Wait {seconds} s and send less, or raise --caller-rate of `extcli serve`.")  # fmt: skip
def too_many_bytes(*, limit: int, seconds: int) -> Facts:
    held = f"more than {limit} bytes a second of datastream events from this caller"
    return Facts(f"{held}; retry in {seconds} s", held, f"at most {limit} bytes a second", (), seconds)


DATASTREAM_TARGET = "datastream"
BYTES_PER_REQUEST = 256
"""Bytes of events that a caller may send for each request that its rate allows."""


class Datastream:
    """Events from a channel's pages to its games, in order of arrival. Nothing is stored."""

    def __init__(self, clock: Clock, publisher: Publisher, settings: Settings) -> None:
        """The rate of callers limits the bytes of viewers and broadcasters. Production's is only compared with."""
        self._clock = clock
        self._publisher = publisher
        self._limit = (settings.caller_rate or settings.production.caller_rate) * BYTES_PER_REQUEST
        window = max(5 * SECOND, MAX_MESSAGE_BYTES * SECOND // max(1, self._limit) + 1)
        self._rate = RateLimit(clock, self._limit, window=window)  # an idle caller may send the largest event
        self._is_limited = bool(settings.caller_rate)
        publisher.on_message(DATASTREAM_TARGET, partial(publisher.hub.deliver, is_lossy=True))

    @endpoint("POST", "/v1/e/datastream", roles=ANYONE, body=Any, query=(CHANNEL,))
    async def post_event(self, call: Call) -> Nothing:
        """Send any JSON of up to 4,096 bytes to the channel's games that follow the datastream.

        A game that does not keep up loses events.
        """
        caller, channel, event = call.caller, call.channel, call.any_body()
        topic, size = _datastream_topic(caller, channel), len(json_codec.encode(event))
        if size > MAX_MESSAGE_BYTES:
            raise event_too_large(size=size)
        with ProductionCheck(CALLER_RATE, raises=self._is_limited):
            is_counted = caller.role not in EXTENSION_WRITERS
            if is_counted and (wait := self._rate.delay((caller.client_id, caller.opaque_id), size)):
                raise too_many_bytes(limit=self._limit, seconds=whole_seconds(wait))
        update = {"events": [{"event": event, "timestamp": self._clock.now() // SECOND}]}
        await self._publisher.publish(topic, DATASTREAM_TARGET, update)
        return Nothing()

    @feed(DATASTREAM_TARGET, roles=CHANNEL_WRITERS)
    async def datastream_topics(self, message: Message) -> tuple[Key, ...]:
        """Follow the events of the connection's channel."""
        return (_datastream_topic(message.caller, message.channel),)


def _datastream_topic(caller: Caller, channel: str | None) -> Key:
    """Return the topic of the channel's games. Raises `BadRequest` if there is no channel."""
    return Key(DATASTREAM_TARGET, caller.client_id, "", required_channel(channel, "the datastream"))
