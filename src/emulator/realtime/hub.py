"""The subscriptions of this process, and message delivery to subscribers."""

from __future__ import annotations

from itertools import chain
from typing import Protocol

from emulator.engines.base import Key
from emulator.realtime.frames import text_frame

ANY_NAME = "*"
"""As a topic's name: matches every name."""


class Subscriber(Protocol):
    """A receiver of frames."""

    def write(self, frame: bytes) -> None:
        """Queue a serialized frame without blocking."""


class Hub:
    """Maps topics to subscribers. A topic is the key of the thing it reports; the name `*` matches all names."""

    def __init__(self) -> None:
        self._subscribers: dict[Key, dict[Subscriber, None]] = {}
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
        for subscriber in list(found[0]) if len(found) == 1 else list(dict.fromkeys(chain(*found))):
            subscriber.write(frame)

    def _forget(self, topic: Key) -> None:
        place = (topic.kind, topic.channel)
        del self._in_channel[place][topic]
        if not self._in_channel[place]:
            del self._in_channel[place]


def _of_each_id(topic: Key) -> list[Key]:
    return [topic._replace(user=user) for user in topic.user.split("\n")]
