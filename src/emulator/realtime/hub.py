"""Which subscribers of this process follow which topic, and handing a message to all of them."""

from __future__ import annotations

from typing import Protocol

from emulator.engines.base import Key
from emulator.realtime.frames import text_frame

ANY_NAME = "*"
"""As the name of a topic: all that have the same other parts."""


class Subscriber(Protocol):
    """Somebody who can be handed a frame and does not make others wait."""

    def write(self, frame: bytes) -> None:
        """Queue a frame that is ready for the wire; never waits."""
        ...


class Hub:
    """Topics are the keys of what they tell about; a subscriber of the name `*` follows all names."""

    def __init__(self) -> None:
        self._followers: dict[Key, dict[Subscriber, None]] = {}

    def subscribe(self, topic: Key, subscriber: Subscriber) -> None:
        """Follow a topic; twice is once."""
        self._followers.setdefault(topic, {})[subscriber] = None

    def unsubscribe(self, topic: Key, subscriber: Subscriber) -> None:
        """Follow it no more."""
        followers = self._followers.get(topic)
        if followers is not None:
            followers.pop(subscriber, None)
            if not followers:
                del self._followers[topic]

    def has_subscribers(self, topic: Key) -> bool:
        """Whether a message about it would reach anybody here."""
        return topic in self._followers or topic._replace(name=ANY_NAME) in self._followers

    def deliver(self, topic: Key, message: bytes) -> None:
        """Hand a text to every follower, each once, in the order in which they came. Its frame is built once."""
        followers = self._followers.get(topic)
        of_all = self._followers.get(topic._replace(name=ANY_NAME))
        if not followers and not of_all:
            return
        frame = text_frame(message)
        for follower in list({**(followers or {}), **of_all}) if of_all else list(followers or ()):
            follower.write(frame)
