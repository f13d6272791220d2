"""Publishing of changes to subscribers on all nodes."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable

from emulator.core.clock import Clock
from emulator.core.errors import EngineError
from emulator.core.keys import Key
from emulator.core.observability.entries import delivery_entry
from emulator.realtime import envelope
from emulator.realtime.hub import Hub
from emulator.storage.shapes import Relay

_log = logging.getLogger("emulator")


class Publisher:
    """Sends updates to subscribers. A topic is the key of the changed record."""

    def __init__(self, relay: Relay, hub: Hub, clock: Clock) -> None:
        self._relay = relay
        self.hub = hub
        """The subscribers on this node."""
        self._clock = clock
        self._callbacks: dict[str, Callable[[Key, bytes], None]] = {}
        relay.listen(self._receive)

    @property
    def is_single_node(self) -> bool:
        """Whether no other node can exist."""
        return self._relay.is_local

    async def publish(self, topic: Key, target: str, data: object) -> None:
        """Send an update to the topic's subscribers on all nodes. Raises `EngineError`."""
        if self.may_have_subscribers(topic):
            await self.publish_raw(topic, envelope.encode_update(target, data, now=self._clock.now()))

    def record_undelivered(self, topic: Key, target: str, data: object) -> None:
        """Add an update that has no subscribers on this node to the journal. Does nothing without a journal."""
        if self.hub.journal.is_on:
            self.hub.journal.add(delivery_entry(topic, envelope.encode_update(target, data, now=self._clock.now())))

    async def try_publish(self, topic: Key, target: str, data: object) -> None:
        """Send an update as `publish` does, but only log an `EngineError`, because the change is already saved."""
        await _log_failure(self.publish(topic, target, data))

    async def publish_raw(self, topic: Key, text: bytes = b"") -> None:
        """Send `text` as it is, without an envelope, to the topic's subscribers on all nodes.

        Without a text, it is a notice that a record has changed, for the callbacks of its kind.
        """
        await self.hub.wait_for_room()
        await self._relay.publish(topic, text)

    async def try_publish_raw(self, topic: Key, text: bytes = b"") -> None:
        """Send a text as `publish_raw` does, but only log an `EngineError`, because the change is already saved."""
        await _log_failure(self.publish_raw(topic, text))

    def may_have_subscribers(self, topic: Key) -> bool:
        """Whether a topic has subscribers on this node, or may have some on other nodes."""
        return not self._relay.is_local or self.hub.has_subscribers(topic)

    def publish_locally(self, topic: Key, target: str, data: object) -> None:
        """Send an update to the topic's subscribers on this node."""
        self.hub.deliver(topic, envelope.encode_update(target, data, now=self._clock.now()))

    def on_message(self, kind: str, callback: Callable[[Key, bytes], None]) -> None:
        """Call `callback`, instead of subscribers, with each message of any node on topics of this kind."""
        self._callbacks[kind] = callback

    def close(self) -> None:
        """Release the relay and the callbacks, which refer to publishers."""
        self._relay.ignore(self._receive)
        self._callbacks.clear()

    def _receive(self, topic: Key, message: bytes) -> None:
        if callback := self._callbacks.get(topic.kind):
            callback(topic, message)
        else:
            self.hub.deliver(topic, message)


async def _log_failure(publishing: Awaitable[None]) -> None:
    try:
        await publishing
    except EngineError as error:
        _log.warning("cannot notify subscribers: %s", error)
