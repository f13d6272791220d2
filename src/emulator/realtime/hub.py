"""The subscriptions of this process, and message delivery to subscribers."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterator
from itertools import chain, islice
from typing import Final, Protocol

from emulator.engines.base import Key
from emulator.realtime.frames import text_frame

ANY_NAME = "*"
"""As a topic's name: matches every name."""
_STEP: Final = 8 * 1024 * 1024
"""Bytes written between two returns to the event loop."""
_WRITE: Final = 16 * 1024
"""Bytes that one write counts for beside those of its frame."""
_MAX_WAITING: Final = 100


class Subscriber(Protocol):
    """A receiver of frames."""

    def write(self, frame: bytes) -> None:
        """Queue a serialized frame without blocking."""


class Hub:
    """Maps topics to subscribers. A topic is the key of the thing it reports; the name `*` matches all names."""

    def __init__(self) -> None:
        self._subscribers: dict[Key, dict[Subscriber, None]] = {}
        self._waiting: deque[tuple[bytes, Iterator[Subscriber]]] = deque()
        """Frames to deliver, each with the subscribers that have not received it."""
        self._in_channel: dict[tuple[str, str | None], dict[Key, None]] = {}
        """The topics that have subscribers, by kind and channel."""

    def subscribe(self, topic: Key, subscriber: Subscriber) -> None:
        """Add a subscriber to a topic; adding it again has no effect."""
        if topic not in self._subscribers:
            self._in_channel.setdefault((topic.kind, topic.channel), {})[topic] = None
        self._subscribers.setdefault(topic, {})[subscriber] = None

    def unsubscribe(self, topic: Key, subscriber: Subscriber) -> None:
        """Remove a subscriber from a topic; no effect if it is not subscribed."""
        subscribers = self._subscribers.get(topic)
        if subscribers is not None:
            subscribers.pop(subscriber, None)
            if not subscribers:
                del self._subscribers[topic]
                self._forget(topic)

    def has_subscribers(self, topic: Key) -> bool:
        """Whether this process has subscribers to a topic, by its name or by `*`."""
        if "\n" in topic.user:
            return any(self.has_subscribers(each) for each in _of_each_id(topic))
        return topic in self._subscribers or topic._replace(name=ANY_NAME) in self._subscribers

    def has_topics(self, kind: str, channel: str | None) -> bool:
        """Whether a topic of this kind in a channel has subscribers in this process."""
        return (kind, channel) in self._in_channel

    def topics(self, kind: str, channel: str | None) -> list[Key]:
        """Return the topics of one kind in a channel that have subscribers in this process."""
        return list(self._in_channel.get((kind, channel), ()))

    def deliver(self, topic: Key, message: bytes) -> None:
        """Send a text to each subscriber once, in order of subscription. Its frame is built once.

        The topic's `user` may list several ids of the user, one per line.
        """
        topics = (each for one in _of_each_id(topic) for each in (one, one._replace(name=ANY_NAME)))
        found = [each for each in map(self._subscribers.get, topics) if each]
        if not found:
            return
        frame = text_frame(message)
        self._send(frame, list(found[0]) if len(found) == 1 else list(dict.fromkeys(chain(*found))))

    async def wait_for_room(self) -> None:
        """Return when few messages wait for delivery, so that publishers are no faster than it."""
        while len(self._waiting) > _MAX_WAITING:  # noqa: ASYNC110 - an event would cost each delivery something
            await asyncio.sleep(0)

    def _send(self, frame: bytes, subscribers: list[Subscriber]) -> None:
        """Write a frame to all; to many in steps, in the order of the messages."""
        self._waiting.append((frame, iter(subscribers)))
        if len(self._waiting) == 1:
            self._send_some()

    def _send_some(self) -> None:
        left = _STEP
        while self._waiting and left > 0:
            frame, subscribers = self._waiting[0]
            cost = _WRITE + len(frame)
            for subscriber in islice(subscribers, left // cost + 1):
                subscriber.write(frame)
                left -= cost
            if left > 0:
                self._waiting.popleft()
        if self._waiting:
            asyncio.get_running_loop().call_soon(self._send_some)

    def _forget(self, topic: Key) -> None:
        place = (topic.kind, topic.channel)
        del self._in_channel[place][topic]
        if not self._in_channel[place]:
            del self._in_channel[place]


def _of_each_id(topic: Key) -> list[Key]:
    return [topic._replace(user=user) for user in topic.user.split("\n")]
