"""The statistics of a poll, its results as WebSocket clients read them, polls in a listing, and poll updates.

Updates are sent at most once per interval and poll: a second for sockets, which also get one when the poll opens or
closes, and 5 seconds for pages (rulings X5, B5).
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import msgspec
from msgspec import UNSET, Struct, UnsetType

from emulator.contract.limits import HIGHEST_VOTE, LOWEST_VOTE
from emulator.core.callers import GLOBAL, is_global
from emulator.core.changes import Change
from emulator.core.clock import SECOND, Clock
from emulator.core.keys import Key
from emulator.core.scheduler import Scheduler, Throttle
from emulator.core.wire import json_codec
from emulator.features.broadcast.service import PageEvents
from emulator.features.kinds import Kind, ListedRecord, Subject
from emulator.features.votes.rules import LIFETIME, STORED, Definition
from emulator.realtime.publisher import Publisher
from emulator.storage.shapes import Ballots, ListedBallot

SPECIFIC_VALUES = 64
"""`specific` counts the values 0 to 63."""
_VALUES = {str(value): value for value in range(LOWEST_VOTE, HIGHEST_VOTE + 1)}
"""The values by their text, which an engine stores; a lookup costs a third of `int`."""


class Stats(Struct):
    """The statistics over all votes of a poll."""

    stddev: float
    mean: float
    sum: int
    count: int
    specific: list[int]


class Poll(Stats):
    """The response of GET and POST `vote`: `stats`, and the same fields at the top level (ruling P1)."""

    stats: Stats
    vote: int | UnsetType = UNSET
    """The caller's latest vote; absent if there is none."""

    @classmethod
    def from_counts(cls, counts: Iterable[tuple[str, int]], choice: str | None) -> Poll:
        """Return the response for the number of votes for each value, and the caller's choice."""
        stats = stats_of(counts)
        vote = UNSET if choice is None else int(choice)
        return cls(stats.stddev, stats.mean, stats.sum, stats.count, stats.specific, stats, vote)


def stats_of(counts: Iterable[tuple[str, int]]) -> Stats:
    """Return statistics of a histogram of (value, votes). Integer arithmetic keeps the population variance exact."""
    count = total = squares = 0
    specific = [0] * SPECIFIC_VALUES
    for choice, votes in counts:
        value = _VALUES[choice]
        weighted = value * votes
        count += votes
        total += weighted
        squares += value * weighted
        if 0 <= value < SPECIFIC_VALUES:
            specific[value] = votes
    if not count:
        return Stats(0.0, 0.0, 0, 0, specific)
    return Stats(math.sqrt(count * squares - total * total) / count, total / count, total, count, specific)


class PollView(Struct):
    """The part of a poll's definition that subscribers read."""

    poll_id: str
    prompt: str
    options: list[str]
    status: str
    """`pending`, `active` or `expired`."""
    user_data: Any


class PollResults(Struct):
    """A poll and its results. `results[i]` counts the votes for option i or, in a poll without options, value i."""

    topic_id: str
    poll: PollView
    results: list[int]
    mean: float
    sum: int
    count: int
    stddev: float
    """Like `mean`, `sum` and `count`, over all votes, including values that are not options."""


class PollReader:
    """Reads polls by their keys."""

    def __init__(self, ballots: Ballots, clock: Clock) -> None:
        self._ballots = ballots
        self._clock = clock

    async def stored_definition(self, key: Key) -> tuple[bytes | None, Definition | None]:
        """Return the definition as stored and decoded; `None` if there is none."""
        text = await self._ballots.definition(key, now=self._clock.now())
        return text, None if text is None else msgspec.json.decode(text, type=Definition)

    async def definition(self, key: Key) -> Definition | None:
        return (await self.stored_definition(key))[1]

    async def results(self, key: Key) -> PollResults | None:
        """Return the results; `None` if the poll has neither a definition nor votes."""
        now = self._clock.now()
        definition, tally = await self.definition(key), await self._ballots.tally(key, now=now)
        if definition is None and not tally.counts:
            return None
        stats, view = stats_of(tally.counts), PollView(key.name, "", [], "active", None)
        if definition is not None:
            status = definition.status_at(now)
            view = PollView(key.name, definition.prompt, definition.options, status, definition.user_data)
        results = stats.specific[: len(view.options)] if view.options else stats.specific
        return PollResults(key.name, view, results, stats.mean, stats.sum, stats.count, stats.stddev)

    async def stats(self, key: Key) -> Stats:
        tally = await self._ballots.tally(key, now=self._clock.now())
        return stats_of(tally.counts)


class ListedPoll(ListedRecord):
    """One poll; `count` is the number of votes."""

    status: str
    """`pending`, `active` or `expired`; `active` without a definition."""
    disabled: bool | UnsetType = UNSET
    """`true` if it refuses votes, whatever its status; else absent."""


class PollList(Struct):
    """Polls by channel, then id."""

    polls: list[ListedPoll]
    next: str
    """The cursor of the next page; `0` if there is none."""


def listed_poll(ballot: ListedBallot, *, now: int) -> ListedPoll:
    """Return a ballot as a poll of a listing. The latest vote was a week before the ballot's expiry."""
    status, disabled = "active", False
    if ballot.definition is not None:
        definition = msgspec.json.decode(ballot.definition, type=Definition)
        status, disabled = definition.status_at(now), definition.disabled
    latest = ballot.expires_at - LIFETIME if ballot.casts else 0
    return ListedPoll(ballot.key.name, ballot.key.channel or "", ballot.casts, latest, status, disabled or UNSET)


SOCKET_INTERVAL = 1.0
"""Seconds of real time between two updates of one poll. A move of the clock sends a waiting update at once."""
PAGE_INTERVAL = 5.0
"""The same for pages."""
_DEFINED_KIND = "poll_definition"


@dataclass(eq=False, repr=False)
class PollUpdates:
    """Sends results to the subscribers of this node, and notifies the other nodes of changes made on this one."""

    _reader: PollReader
    _publisher: Publisher
    _pages: PageEvents
    _scheduler: Scheduler
    _clock: Clock

    def __post_init__(self) -> None:
        self._is_single_node = self._publisher.is_single_node
        self._updating = Throttle(self._send_socket_update, SOCKET_INTERVAL)
        self._notifying = Throttle(self._publisher.publish_raw, SOCKET_INTERVAL)
        self._scheduling = Throttle(self.schedule_updates, 0.0)
        self._updating_pages = Throttle(self._send_page_update, PAGE_INTERVAL)
        self._throttles = (self._updating, self._notifying, self._scheduling, self._updating_pages)
        self._publisher.on_message("poll", lambda key, _: self._request_local_updates(key))
        self._publisher.on_message(_DEFINED_KIND, lambda key, _: self._scheduling.trigger(key._replace(kind="poll")))

    def request_updates(self, poll: Key) -> None:
        """Handle a new vote, the deletion of the poll, or its early end."""
        if self._is_single_node:
            self._request_local_updates(poll)
        else:
            self._notifying.trigger(poll)

    async def handle_change(self, change: Change) -> None:
        """Handle a change of a poll: a vote, its deletion, or a definition, which is the content of `change`."""
        if isinstance(change.content, Definition):  # every node reschedules the updates at its opening and closing
            await self._publisher.try_publish_raw(change.key._replace(kind=_DEFINED_KIND))
            return
        if change.did != "vote":
            self._scheduler.cancel(change.key)
        self.request_updates(change.key)  # pages get zeros of a deleted poll, sockets nothing

    async def schedule_updates(self, poll: Key) -> None:
        """Schedule the updates at a poll's opening and closing, if it has a definition."""
        definition = await self._reader.definition(poll)
        if definition is None:
            return
        now = self._clock.now()
        changes = (definition.starts_at * SECOND, definition.ends_at * SECOND)
        at = next((each for each in changes if each > now), None)
        if at is None:
            self._scheduler.cancel(poll)
            return
        # The poll may expire long before, and then needs no timer.
        look_at = min(at, now + LIFETIME)

        async def callback() -> None:
            if self._clock.now() >= at:
                self._request_socket_update(poll)
            await self.schedule_updates(poll)

        self._scheduler.schedule(poll, look_at, callback)

    async def clock_moved(self) -> None:
        """Send all delayed updates now, because the clock was moved."""
        await self._updating.flush()
        await self._updating_pages.flush()

    def forget(self) -> None:
        for throttle in self._throttles:
            throttle.clear()

    def handle_reload(self) -> None:
        """Handle a replacement of all data: send the results of subscribed polls, and reschedule their updates."""
        for poll in self._publisher.hub.all_topics("poll"):
            self._request_local_updates(poll)
            self._scheduling.trigger(poll)

    async def close(self) -> None:
        for throttle in self._throttles:
            await throttle.close()

    def _request_local_updates(self, poll: Key) -> None:
        self._request_socket_update(poll)
        # The votes of a token without a channel belong to no page, unless the poll is extension-wide (ruling A4).
        if (poll.channel or is_global(poll.name)) and self._pages.has_listeners(poll):
            self._updating_pages.trigger(poll)

    async def _send_page_update(self, poll: Key) -> None:
        update = {"id": poll.name, "stats": await self._reader.stats(poll)}
        self._pages.deliver(poll, f"vote_update:{poll.name}", json_codec.encode(update))

    def _request_socket_update(self, poll: Key) -> None:
        if self._publisher.hub.has_subscribers(poll):
            self._updating.trigger(poll)

    async def _send_socket_update(self, poll: Key) -> None:
        results = await self._reader.results(poll)
        if results is not None:
            self._publisher.publish_locally(poll, "poll", results)


def _poll_facts(ballot: ListedBallot, now: int) -> dict[str, object]:
    poll = listed_poll(ballot, now=now)
    return {"status": poll.status, "disabled": poll.disabled}


POLLS = Kind(
    "polls",
    "the polls, with their votes",
    ("poll",),
    LIFETIME,
    STORED,
    _poll_facts,
    waits_for=Subject("poll", "poll", frozenset({"count", "value", "sum"}), "default", shared=GLOBAL),
)
