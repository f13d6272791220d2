"""Telling subscribers what has changed, on whichever node they are."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import Final

from emulator.clock import Clock
from emulator.engines.base import Key, Relay
from emulator.errors import EngineError
from emulator.realtime import envelope
from emulator.realtime.hub import Hub

_NOTICE: Final = b""
_log = logging.getLogger("emulator")


class Publisher:
    """What services tell subscribers. A topic is the key of the thing that changed."""

    def __init__(self, relay: Relay, hub: Hub, clock: Clock) -> None:
        self._relay = relay
        self._hub = hub
        self._clock = clock
        self._notices: dict[str, Callable[[Key], None]] = {}
        relay.listen(self._arrived)

    @property
    def is_single_node(self) -> bool:
        """Whether there can be no other node."""
        return self._relay.is_local

    async def publish(self, topic: Key, target: str, data: object) -> None:
        """Send an update to the topic's subscribers on all nodes; `target` and `data` are what it shows.

        Written once, not once per subscriber, and not at all if nobody can be listening.
        """
        if self.may_have_subscribers(topic):
            await self._relay.publish(topic, envelope.update(target, data, now=self._clock.now()))

    async def try_publish(self, topic: Key, target: str, data: object) -> None:
        """`publish` what is done already, and stays done when nobody can be told: that is said in the log only."""
        await _as_far_as_possible(self.publish(topic, target, data))

    async def publish_raw(self, topic: Key, text: bytes) -> None:
        """Send a text that is no update to the topic's subscribers on all nodes, as it stands."""
        await self._relay.publish(topic, text)

    def may_have_subscribers(self, topic: Key) -> bool:
        """Whether anybody, on any node, may be following a topic."""
        return not self._relay.is_local or self._hub.has_subscribers(topic)

    def has_subscribers(self, topic: Key) -> bool:
        """Whether anybody on this node follows a topic."""
        return self._hub.has_subscribers(topic)

    def publish_locally(self, topic: Key, target: str, data: object) -> None:
        """Send an update to the topic's subscribers on this node."""
        self._hub.deliver(topic, envelope.update(target, data, now=self._clock.now()))

    async def notify(self, thing: Key) -> None:
        """Tell all nodes, this one included, that a thing has changed, and not what it is now."""
        await self._relay.publish(thing, _NOTICE)

    async def try_notify(self, thing: Key) -> None:
        """`notify` of what is done already, and stays done when nobody can be told."""
        await _as_far_as_possible(self.notify(thing))

    def on_notice(self, shelf: str, act: Callable[[Key], None]) -> None:
        """Have `act` called with each thing of that shelf that a node has notified of. It must not wait."""
        self._notices[shelf] = act

    def _arrived(self, topic: Key, message: bytes) -> None:
        if message != _NOTICE:
            self._hub.deliver(topic, message)
        elif act := self._notices.get(topic.kind):
            act(topic)


async def _as_far_as_possible(telling: Awaitable[None]) -> None:
    try:
        await telling
    except EngineError as error:
        _log.warning("subscribers could not be told: %s", error)
