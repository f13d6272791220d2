"""The subscriptions of this process, and message delivery to subscribers."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from typing import Protocol

from emulator.core.changes import Change, Changes
from emulator.core.clock import processor_time
from emulator.core.journal import NO_JOURNAL, Entry, Journal
from emulator.core.keys import Key
from emulator.core.observability.entries import delivery_entry
from emulator.core.observability.masking import masked_text
from emulator.realtime.connection import text_frame

SOCKET = "socket"
"""The kind of the changes of connections and subscriptions."""
ANY_NAME = "*"
"""As a topic's name: matches every name."""
_LONG_STEP = 8 * 1024 * 1024
"""Bytes written between two returns to the event loop, at most."""
_SHORT_STEP = 1024 * 1024
"""The same while the loop has little else to do. In short steps, more messages arrive in time to be joined."""
_SECONDS_PER_BYTE = 3e-9
"""If the loop uses more processor time between two steps, they become longer: deliveries get a fifth of a busy loop."""
_WRITE_COST = 16 * 1024
"""Bytes that one write counts for, besides its frame."""
_MAX_JOINED_BYTES = 64 * 1024
"""Bytes of the frames that one write may deliver. A reader that keeps up must never have its outbox filled at once."""
_MAX_QUEUED = 100
_MAX_NAMED_RECIPIENTS = 10
"""Recipients that the journal names of a delivery."""
_log = logging.getLogger("emulator")


class Subscriber(Protocol):
    """A receiver of frames."""

    @property
    def label(self) -> str:
        """The socket's number and caller, as the journal and the log name it: `socket 12 (game, broadcaster 777)`."""

    @property
    def is_reachable(self) -> bool:
        """Whether the socket is open and its unread bytes are within the limit."""

    @property
    def has_room(self) -> bool:
        """Whether less than half of the outbox is full."""

    def write(self, frames: bytes, count: int = 1) -> None:
        """Queue `count` serialized frames without blocking."""


class _Batch:
    """Messages on their way to the same subscribers, who are visited in circles.

    A message starts at the next subscriber and ends when all have been visited. So each visit delivers all messages
    since the last one, in order, with one write.
    """

    def __init__(self, subscribers: list[Subscriber], journal: Journal) -> None:
        self.subscribers = subscribers
        self._journal = journal
        self.size = 0
        """Bytes of the frames."""
        self._position = 0
        """Visits so far."""
        self._frames: deque[tuple[bytes, int, Entry | None]] = deque()
        """The frames, each with the position after its last visit, and its entry in the journal if there is one."""

    def __len__(self) -> int:
        return len(self._frames)

    def add(self, frame: bytes, entry: Entry | None) -> None:
        self._frames.append((frame, self._position + len(self.subscribers), entry))
        self.size += len(frame)

    def deliver(self, limit: int) -> int:
        """Write pending messages to the next subscribers, about `limit` bytes in all; return the bytes written."""
        frames = b"".join([frame for frame, _, _ in self._frames])
        cost = _WRITE_COST + len(frames)
        first = self._position % len(self.subscribers)
        visited = self.subscribers[first : first + min(limit // cost + 1, self._frames[0][1] - self._position)]
        _write_to_all(visited, frames, len(self._frames))
        if self._journal.is_on:
            _add_recipients([entry for _, _, entry in self._frames if entry is not None], visited)
        self._position += len(visited)
        while self._frames and self._frames[0][1] == self._position:
            frame, _, entry = self._frames.popleft()
            self.size -= len(frame)
            if entry is not None:
                self._journal.add(entry)
        return cost * len(visited)


class Hub:
    """Maps topics to subscribers. A topic is the key of the record it reports; the name `*` matches all names."""

    def __init__(self, changes: Changes | None = None, journal: Journal = NO_JOURNAL) -> None:
        self.changes = changes or Changes(None)
        self.journal = journal
        self._subscribers: dict[Key, dict[Subscriber, None]] = {}
        self._waiting: deque[_Batch] = deque()
        self._step = _SHORT_STEP
        self._stepped_at = 0.0
        self._in_channel: dict[tuple[str, str | None], dict[Key, None]] = {}
        """The topics that have subscribers, by kind and channel.

        Topics of one user are left out; there may be thousands.
        """

    def subscribe(self, topic: Key, subscriber: Subscriber) -> None:
        """Add a subscriber to a topic; adding it again has no effect."""
        if topic not in self._subscribers and not topic.user:
            self._in_channel.setdefault((topic.kind, topic.channel), {})[topic] = None
        self._subscribers.setdefault(topic, {})[subscriber] = None
        self.changes.wake()

    def note_subscription(self, topic: Key) -> None:
        """Add a subscription to the record of changes, under its first topic, for tests that wait for it."""
        name = f"{topic.kind}:{topic.name}" if topic.name else topic.kind
        self.changes.note(Change(Key(SOCKET, topic.owner, name, topic.channel), "subscribed"))

    def unsubscribe(self, topic: Key, subscriber: Subscriber) -> None:
        """Remove a subscriber from a topic; no effect if it is not subscribed."""
        subscribers = self._subscribers.get(topic)
        if subscribers is not None:
            subscribers.pop(subscriber, None)
            self.changes.wake()
            if not subscribers:
                del self._subscribers[topic]
                if not topic.user:
                    place = (topic.kind, topic.channel)
                    del self._in_channel[place][topic]
                    if not self._in_channel[place]:
                        del self._in_channel[place]

    def has_subscribers(self, topic: Key) -> bool:
        """Whether this process has subscribers to a topic, by its name or by `*`."""
        if "\n" in topic.user:
            return any(self.has_subscribers(each) for each in _topics_by_id(topic))
        return topic in self._subscribers or topic._replace(name=ANY_NAME) in self._subscribers

    def all_topics(self, kind: str) -> list[Key]:
        """Return the topics of this kind that have subscribers in this process, without topics of single users."""
        return [topic for (each, _), topics in self._in_channel.items() if each == kind for topic in topics]

    def has_topics(self, kind: str, channel: str | None) -> bool:
        """Whether a topic of this kind in a channel has subscribers in this process."""
        return (kind, channel) in self._in_channel

    def topics(self, kind: str, channel: str | None) -> list[Key]:
        """Return the topics of one kind in a channel that have subscribers in this process.

        Topics of single users are left out.
        """
        return list(self._in_channel.get((kind, channel), ()))

    def count_subscribers(self, matches: Callable[[Key], bool]) -> int:
        """Return the number of subscribers of the topics that `matches` accepts."""
        found = (subscribers for topic, subscribers in self._subscribers.items() if matches(topic))
        return len(set().union(*found))

    def deliver(self, topic: Key, message: bytes, *, is_lossy: bool = False) -> None:
        """Send a text to each subscriber of a topic once, in order. Its frame is built once for all.

        The topic's `user` may list several ids of the user, one per line. If it `is_lossy`, subscribers that do not
        keep up do not receive it.
        """
        topics = (each for one in _topics_by_id(topic) for each in (one, one._replace(name=ANY_NAME)))
        found = [each for each in map(self._subscribers.get, topics) if each]
        if not found:
            return
        frame = text_frame(message)
        entry = delivery_entry(topic, message) if self.journal.is_on else None
        subscribers = list(found[0]) if len(found) == 1 else list(dict.fromkeys(chain(*found)))
        if is_lossy:  # at once: a subscriber that has room now may have none later
            self._write_now(frame, [each for each in subscribers if each.has_room], entry)
        else:
            self._send_or_queue(frame, subscribers, entry)

    async def wait_for_room(self) -> None:
        """Wait until few messages are queued, so that publishers are not faster than delivery."""
        while sum(map(len, self._waiting)) > _MAX_QUEUED:  # noqa: ASYNC110 - an event would cost each delivery something
            await asyncio.sleep(0)

    def _send_or_queue(self, frame: bytes, subscribers: list[Subscriber], entry: Entry | None) -> None:
        """Write a frame to its subscribers.

        For few subscribers this happens at once, for many in steps with later messages.
        """
        if not self._waiting and len(subscribers) * (_WRITE_COST + len(frame)) <= _LONG_STEP:
            self._write_now(frame, subscribers, entry)
            return
        last = self._waiting[-1] if self._waiting else None
        if last is None or last.size + len(frame) > _MAX_JOINED_BYTES or last.subscribers != subscribers:
            if last is None:
                self._stepped_at = processor_time()
                asyncio.get_running_loop().call_soon(self._deliver_step)
            last = _Batch(subscribers, self.journal)
            self._waiting.append(last)
        last.add(frame, entry)

    def _write_now(self, frame: bytes, subscribers: list[Subscriber], entry: Entry | None) -> None:
        _write_to_all(subscribers, frame)
        if entry is not None:
            _add_recipients([entry], subscribers)
            self.journal.add(entry)

    def _deliver_step(self) -> None:
        now = processor_time()
        is_busy = now - self._stepped_at > self._step * _SECONDS_PER_BYTE
        self._step = min(self._step * 2, _LONG_STEP) if is_busy else max(self._step // 2, _SHORT_STEP)
        self._stepped_at = now
        left = self._step
        while self._waiting and left > 0:
            left -= self._waiting[0].deliver(left)
            if not self._waiting[0]:
                self._waiting.popleft()
        if self._waiting:
            asyncio.get_running_loop().call_soon(self._deliver_step)


def _write_to_all(subscribers: Iterable[Subscriber], frames: bytes, count: int = 1) -> None:
    """Write `count` frames to each subscriber. A failing subscriber does not affect the others."""
    for subscriber in subscribers:
        try:
            subscriber.write(frames, count)
        except Exception:
            _log.exception("unexpected failure in a delivery to %s", subscriber.label)


def _add_recipients(entries: Iterable[Entry], recipients: Sequence[Subscriber]) -> None:
    """Add recipients to the entries of messages that were written to them."""
    reached = [each.is_reachable for each in recipients]
    delivered = sum(reached)
    for entry in entries:
        entry.delivered += delivered
        entry.dropped += len(reached) - delivered
        left = _MAX_NAMED_RECIPIENTS - (entry.recipients.count("\n") + 1 if entry.recipients else 0)
        if left > 0:
            named = zip(recipients[:left], reached[:left], strict=True)
            texts = [each.label if is_check_reached else f"{each.label}, dropped" for each, is_check_reached in named]
            entry.recipients = masked_text("\n".join([entry.recipients, *texts] if entry.recipients else texts))


def _topics_by_id(topic: Key) -> list[Key]:
    return [topic._replace(user=user) for user in topic.user.split("\n")]
