"""Automatic events for pages: changes of stores and polls, as the published SDK documents them (ruling B5)."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final

import msgspec

from emulator.config.environment import Environment
from emulator.engines.shapes import Key
from emulator.errors import BadRequest
from emulator.features.broadcast.rules import BROADCAST, FAST, encode_for_page, full_name, needs_compression
from emulator.realtime.hub import Hub
from emulator.realtime.publisher import Publisher
from emulator.realtime.web_page_access import WEB_PAGE, pusher_topic
from emulator.realtime.web_page_connection import broadcast_frame

_MESSAGE: Final = "page_event"
"""The kind of the messages between nodes."""
_MAX_WARNINGS: Final = 1_000
_log = logging.getLogger("emulator")


class PageEvents:
    """Sends events to the pages of an extension in a channel, or in all channels.

    `of` is the key of the record that has changed. Its channel is the pages' channel; empty means the topic of all
    channels. Its owner is the extension; empty means every extension with pages in the channel, because they share the
    store. `text` is the event's data as JSON. Data over the size limit of a broadcast is not sent; the log says so
    once.
    """

    def __init__(
        self, publisher: Publisher, hub: Hub, environment: Environment, *, admits: Callable[[str], bool], enabled: bool
    ) -> None:
        self._publisher = publisher
        self._hub = hub
        self._environment = environment
        self._admits = admits
        self._enabled = enabled
        self._warned: set[tuple[str, str]] = set()
        publisher.on_message(_MESSAGE, lambda key, text: self.deliver(key, key.name, text))

    def are_listening(self, of: Key) -> bool:
        """Whether pages that receive these events are connected to this node."""
        return self._enabled and self._hub.has_topics(WEB_PAGE, of.channel) and bool(self._topics(of))

    async def publish(self, of: Key, event: str, text: bytes) -> None:
        """Send an event to the pages of all nodes. An `EngineError` is only logged, because the change is saved."""
        if not self._enabled:
            return
        if self._publisher.is_single_node:
            self.deliver(of, event, text)
        else:
            await self._publisher.try_publish_raw(Key(_MESSAGE, of.owner, event, of.channel), text)

    def deliver(self, of: Key, event: str, text: bytes) -> None:
        """Send an event to the pages of this node."""
        topics = self._topics(of)
        if not topics:
            return
        try:
            compress = needs_compression(text, FAST)
        except BadRequest as error:
            self._warn(topics[0].owner, event, error)
            return
        for topic in topics:
            name = full_name(self._environment.name, topic.owner, event)
            message = encode_for_page(name, msgspec.Raw(text), compress, FAST)
            self._hub.deliver(topic, broadcast_frame(topic, BROADCAST, message))

    def _topics(self, of: Key) -> list[Key]:
        if of.owner:
            topic = pusher_topic(of.owner, of.channel or "")
            return [topic] if self._hub.has_subscribers(topic) else []
        # A page may subscribe under any client id, so only real ones count.
        return [topic for topic in self._hub.topics(WEB_PAGE, of.channel) if self._admits(topic.owner)]

    def _warn(self, client_id: str, event: str, error: BadRequest) -> None:
        if (client_id, event) not in self._warned and len(self._warned) < _MAX_WARNINGS:
            self._warned.add((client_id, event))
            _log.warning("pages of %r do not receive %r: %s", client_id, event, error.detail)
