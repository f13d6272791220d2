"""Poll updates, at most one per interval and poll: a second for sockets, which also get one when the poll opens or
closes, and 5 seconds for pages (rulings X5, B5)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Protocol

from msgspec import Struct

from emulator.callers import is_global
from emulator.changes import Change
from emulator.clock import Clock
from emulator.engines.shapes import Key
from emulator.features.votes.definitions import Definition, next_status_change
from emulator.features.votes.results import PollReader
from emulator.features.votes.rules import LIFETIME, Stats
from emulator.realtime.publisher import Publisher
from emulator.scheduling.scheduler import Scheduler, Throttle
from emulator.wire import json_codec

INTERVAL: Final = 1.0
"""Seconds of real time between two updates of one poll. A move of the clock sends a waiting update at once."""
PAGE_INTERVAL: Final = 5.0
"""The same for pages."""
_DEFINED: Final = "poll_definition"


class PageUpdate(Struct):
    """The data of the event `vote_update:<poll>` for pages."""

    id: str
    stats: Stats


class Pages(Protocol):
    """Web pages that listen for votes (ruling B5)."""

    def are_listening(self, of: Key) -> bool: ...

    def deliver(self, of: Key, event: str, text: bytes) -> None: ...


@dataclass(eq=False, repr=False)
class PollUpdates:
    """Sends results to the subscribers of this node, and notifies the other nodes of changes made on this one."""

    _reader: PollReader
    _publisher: Publisher
    _pages: Pages
    _scheduler: Scheduler
    _clock: Clock

    def __post_init__(self) -> None:
        self._is_single_node = self._publisher.is_single_node
        self._updating = Throttle(self._send_update, INTERVAL)
        self._notifying = Throttle(self._publisher.notify, INTERVAL)
        self._scheduling = Throttle(self.watch, 0.0)
        self._updating_pages = Throttle(self._send_page_update, PAGE_INTERVAL)
        self._throttles = (self._updating, self._notifying, self._scheduling, self._updating_pages)
        self._publisher.on_notice("poll", self._request_updates)
        self._publisher.on_notice(_DEFINED, lambda key: self._scheduling.trigger(key._replace(kind="poll")))

    def changed(self, poll: Key) -> None:
        """Handle a new vote, or the early end of the poll."""
        if self._is_single_node:
            self._request_updates(poll)
        else:
            self._notifying.trigger(poll)

    async def committed(self, change: Change) -> None:
        """Handle a change of a poll: a vote, its deletion, or a definition, which is the content of `change`."""
        if change.did == "vote":
            self.changed(change.key)
        elif isinstance(change.content, Definition):
            await self._definition_changed(change.key, change.content)
        else:
            self._cleared(change.key)

    async def _definition_changed(self, poll: Key, definition: Definition) -> None:
        """Reschedule the updates at the poll's opening and closing, on every node."""
        if self._is_single_node:
            self._schedule(poll, definition)
        else:
            await self._publisher.try_notify(poll._replace(kind=_DEFINED))

    async def watch(self, poll: Key) -> None:
        """Schedule the updates at a poll's opening and closing, if it has a definition."""
        definition = await self._reader.definition(poll)
        if definition is not None:
            self._schedule(poll, definition)

    def _cleared(self, poll: Key) -> None:
        """Handle the deletion of a poll: send zeros to its pages, and nothing to sockets."""
        self._scheduler.cancel(poll)
        if self._is_single_node:
            self._request_page_update(poll)
        elif poll.channel is not None:
            self._notifying.trigger(poll)

    async def clock_moved(self) -> None:
        """Send all delayed updates now, because the clock was moved."""
        await self._updating.flush()
        await self._updating_pages.flush()

    def forget(self) -> None:
        for throttle in self._throttles:
            throttle.clear()

    def reloaded(self) -> None:
        """Handle a replacement of all data: send the results of subscribed polls, and reschedule their updates."""
        for poll in self._publisher.hub.all_topics("poll"):
            self._request_updates(poll)
            self._scheduling.trigger(poll)

    async def close(self) -> None:
        for throttle in self._throttles:
            await throttle.close()

    def _request_updates(self, poll: Key) -> None:
        self._request_update(poll)
        self._request_page_update(poll)

    def _request_page_update(self, poll: Key) -> None:
        # The votes of a token without a channel belong to no page, unless the poll is extension-wide (ruling A4).
        if (poll.channel or is_global(poll.name)) and self._pages.are_listening(poll):
            self._updating_pages.trigger(poll)

    async def _send_page_update(self, poll: Key) -> None:
        update = PageUpdate(poll.name, await self._reader.stats(poll))
        self._pages.deliver(poll, f"vote_update:{poll.name}", json_codec.encode(update))

    def _request_update(self, poll: Key) -> None:
        if self._publisher.hub.has_subscribers(poll):
            self._updating.trigger(poll)

    async def _send_update(self, poll: Key) -> None:
        results = await self._reader.results(poll)
        if results is not None:
            self._publisher.publish_locally(poll, "poll", results)

    def _schedule(self, poll: Key, definition: Definition) -> None:
        now = self._clock.now()
        at = next_status_change(definition, now=now)
        if at is None:
            self._scheduler.cancel(poll)
            return
        # The poll may expire long before, and then needs no timer.
        look_at = min(at, now + LIFETIME)

        async def callback() -> None:
            if self._clock.now() >= at:
                self._request_update(poll)
            await self.watch(poll)

        self._scheduler.schedule(poll, look_at, callback)
