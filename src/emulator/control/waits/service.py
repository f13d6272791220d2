"""Decides conditions at once, and again at each change that may meet them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Any, Final, Protocol

import msgspec
from msgspec import Struct

from emulator.callers import Caller, Role
from emulator.changes import Change, Changes
from emulator.clock import SECOND, monotonic
from emulator.control.waits.entries import EntryCount, Select
from emulator.control.waits.refusals import mark_unusable, several_workers
from emulator.control.waits.rules import (
    FILTERS,
    RECORDED,
    Condition,
    condition_of,
    count_facts,
    document_facts,
    timeout_of,
)
from emulator.errors import NotFound
from emulator.journal import DELIVERY, Entry, Journal

_LISTED: Final = 3
"""Changes in an answer."""
_NOT_COUNTED: Final = ("cleared", "defined")
_LOOK_EVERY: Final = 0.05
"""Seconds between two looks at data that other processes change too."""


class ListedChange(Struct):
    """A recent change."""

    mark: int
    at: int
    """Unix ms, by the service's clock."""
    kind: str
    id: str
    client_id: str
    channel_id: str
    user: str
    """The opaque id of the user who did it; empty if unknown."""
    did: str
    """What happened, such as `vote` or `cleared`."""
    value: str | int | None
    """The value of a vote, or the text of an answer."""


class Outcome(Struct):
    """Whether a condition is met, and why not."""

    met: bool
    wanted: dict[str, str]
    """What is wanted, in words, by the name of each comparison."""
    found: dict[str, Any]
    """What was found at the end, by the same names; a path that the store does not have is absent."""
    changes: list[ListedChange]
    """The last three changes of this kind, oldest first."""
    mark: int
    """The mark of the latest change, for the next `since`."""


class Polls(Protocol):
    async def counts(self, caller: Caller, channel: str | None, poll_id: str) -> Mapping[str, int]:
        """Return the votes by value."""


class Rankings(Protocol):
    async def counts(self, caller: Caller, channel: str | None, ranking_id: str) -> Mapping[str, int]:
        """Return the users by answer."""


class Buffers(Protocol):
    async def summary(self, caller: Caller, channel: str | None, buffer_id: str) -> tuple[int, bytes]:
        """Return the number of entries, and the newest as JSON; empty if there is none."""


class Stores(Protocol):
    async def find(self, name: str, caller: Caller, channel: str | None, user_id: str) -> bytes | None:
        """Return a store by its name, or `None` if it was never written. Raises `BadRequest`."""


class JsonStores(Protocol):
    async def read(self, caller: Caller, channel: str | None, store_id: str) -> bytes:
        """Return a JSON store. Raises `NotFound`."""


Sockets = Callable[[str, str, str | None], int]
"""Counts the open sockets, or the subscribers of a topic, by client id and channel. Raises `BadRequest`."""


@dataclass(eq=False, repr=False)
class Waits:
    """Waits for conditions. `has_peers` states that this is one of several processes of the same service."""

    _changes: Changes
    _polls: Polls
    _rankings: Rankings
    _buffers: Buffers
    _stores: Stores
    _json_stores: JsonStores
    _sockets: Sockets
    _journal: Journal
    _select: Select
    _: KW_ONLY
    has_peers: bool
    is_alone: bool
    """Whether no other process can change the data."""

    async def wait(self, query: Mapping[str, str]) -> Outcome:
        """Return once the condition is met, or its timeout has passed. Raises `BadRequest` and `Forbidden`.

        The timeout is real time, whatever the service's clock.
        """
        condition = condition_of(query)
        deadline = monotonic() + timeout_of(query.get("timeout", "")) / SECOND
        entries = self._entries(condition, query)
        if entries is None:
            self._check(condition)
        with self._journal.watching() if entries else self._changes.watching(condition.kind) as changed:
            while True:
                changed.clear()
                found = (
                    count_facts(condition.checks, {"": await entries.count()})
                    if entries
                    else await self._found(condition)
                )
                left = deadline - monotonic()
                if condition.is_met(found) or left <= 0:
                    return self._outcome(condition, found, entries)
                try:
                    async with asyncio.timeout(left if self.is_alone else min(left, _LOOK_EVERY)):
                        await changed.wait()
                except TimeoutError:
                    pass

    def _entries(self, condition: Condition, query: Mapping[str, str]) -> EntryCount | None:
        """Return the counter of a condition about the journal; `None` for any other condition."""
        if condition.subject != "journal":
            return None
        filters = {name: value for name, value in query.items() if name in (*FILTERS, "client_id", "channel_id")}
        return EntryCount(self._journal, self._select, filters, condition.id, condition.since)

    def _check(self, condition: Condition) -> None:
        """Refuse what this process cannot know."""
        if self.has_peers and (condition.since is not None or condition.subject in (*RECORDED, "sockets")):
            raise several_workers()
        since = condition.since
        if since is None:
            return
        if since > self._changes.mark:
            problem = f"is after the latest mark, {self._changes.mark}; marks begin anew with the service"
            raise mark_unusable(since=since, problem=problem)
        if not self._changes.keeps_since(since, condition.kind):
            raise mark_unusable(since=since, problem="is too old; take a mark shortly before")

    async def _found(self, condition: Condition) -> dict[str, Any]:
        """Return what the checks of a condition find now."""
        subject, id, channel = condition.subject, condition.id, condition.channel
        caller = Caller(condition.client_id, Role.ADMIN, None, None, "A-admin")
        checks = condition.checks
        if subject == "sockets":
            return count_facts(checks, {"": self._sockets(id, condition.client_id, channel)})
        if subject == "store":
            text = await self._stores.find(id, caller, channel, condition.user)
            return document_facts(checks, text) | self._writes(condition)
        if subject == "json_store":
            try:
                text = await self._json_stores.read(caller, channel, id)
            except NotFound:
                text = None
            return document_facts(checks, text) | self._writes(condition)
        latest: dict[str, Any] = {}
        counts: Mapping[str, int] = {}
        if subject == "accumulate":
            count, newest = await self._buffers.summary(caller, channel, id)
            counts = {"": count}
            latest = {"latest": msgspec.json.decode(newest)} if newest else {}
        if condition.since is not None or subject in RECORDED:
            counts = self._noted(condition)
        elif subject == "poll":
            counts = await self._polls.counts(caller, channel, id)
        elif subject == "rank":
            counts = await self._rankings.counts(caller, channel, id)
        return count_facts(checks, counts) | latest

    def _writes(self, condition: Condition) -> dict[str, int]:
        """Return the number of writes of a store after the mark, if there is one."""
        return {} if condition.since is None else {"writes": sum(self._noted(condition).values())}

    def _noted(self, condition: Condition) -> dict[str, int]:
        """Count the changes after the mark that add something, by value."""
        counts: dict[str, int] = {}
        for change in self._changes.since(condition.since or 0, condition.kind, condition.concerns):
            if change.did == condition.id if condition.subject == "pin" else change.did not in _NOT_COUNTED:
                value = "" if change.value is None else str(change.value)
                counts[value] = counts.get(value, 0) + change.times
        return counts

    def _outcome(self, condition: Condition, found: dict[str, Any], entries: EntryCount | None) -> Outcome:
        names = condition.wanted()
        return Outcome(
            condition.is_met(found),
            names,
            {name: value for name, value in found.items() if name in names},
            [_listed_entry(entry) for entry in entries.latest(_LISTED)]
            if entries
            else [_listed(change) for change in self._changes.latest(condition.kind, _LISTED)],
            self._journal.mark if entries else self._changes.mark,
        )


def _listed_entry(entry: Entry) -> ListedChange:
    caller = entry.caller
    did, value = ("delivered", entry.delivered) if entry.kind == DELIVERY else ("answered", entry.status)
    who = (caller.client_id, caller.channel_id or "", caller.opaque_id) if caller else ("", "", "")
    return ListedChange(entry.number, entry.at, "journal", entry.name, *who, did, value)


def _listed(change: Change) -> ListedChange:
    key = change.key
    return ListedChange(
        change.mark, change.at, key.kind, key.name, key.owner, key.channel or "", change.user, change.did, change.value
    )
