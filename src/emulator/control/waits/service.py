"""Evaluates a condition at once, and again after each change that may meet it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Any, Final

import msgspec
from msgspec import Struct

from emulator.callers import Caller, Role
from emulator.changes import Change, Changes
from emulator.clock import SECOND, monotonic
from emulator.control.waits.entries import EntryCount, Select
from emulator.control.waits.refusals import mark_unusable, several_workers
from emulator.control.waits.rules import (
    FILTERS,
    Condition,
    condition_of,
    count_facts,
    document_facts,
    timeout_of,
)
from emulator.journal import DELIVERY, Entry, Journal
from emulator.kinds import Measure, Subject

_LISTED: Final = 3
"""Changes in a response."""
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


Sockets = Callable[[str, str, str | None], int]
"""Counts the open sockets, or the subscribers of a topic, by client id and channel. Raises `BadRequest`."""


@dataclass(eq=False, repr=False)
class Waits:
    """Waits for conditions. `has_peers` states that this is one of several processes of the same service."""

    _changes: Changes
    _subjects: Mapping[str, Subject]
    _measures: Mapping[str, Measure]
    """By subject, for those that are stored."""
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
        condition = condition_of(query, self._subjects)
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
                    else await self._current_values(condition)
                )
                left = deadline - monotonic()
                if condition.is_met(found) or left <= 0:
                    return self._build_outcome(condition, found, entries)
                try:
                    async with asyncio.timeout(left if self.is_alone else min(left, _LOOK_EVERY)):
                        await changed.wait()
                except TimeoutError:
                    pass

    def _entries(self, condition: Condition, query: Mapping[str, str]) -> EntryCount | None:
        """Return the counter of a condition about the journal; `None` for any other condition."""
        if condition.subject.name != "journal":
            return None
        filters = {name: value for name, value in query.items() if name in (*FILTERS, "client_id", "channel_id")}
        return EntryCount(self._journal, self._select, filters, condition.id, condition.since)

    def _check(self, condition: Condition) -> None:
        """Refuse conditions that this process cannot decide."""
        since, subject = condition.since, condition.subject
        if self.has_peers and (since is not None or not subject.is_stored or subject.name == "sockets"):
            raise several_workers()
        if since is None:
            return
        if since > self._changes.mark:
            problem = f"is after the latest mark, {self._changes.mark}; marks begin again when the service starts"
            raise mark_unusable(since=since, problem=problem)
        if not self._changes.keeps_since(since, condition.kind):
            raise mark_unusable(since=since, problem="is too old; take a mark shortly before")

    async def _current_values(self, condition: Condition) -> dict[str, Any]:
        """Return the current values for the checks of a condition."""
        subject, id, checks = condition.subject, condition.id, condition.checks
        if subject.name == "sockets":
            return count_facts(checks, {"": self._sockets(id, condition.client_id, condition.channel)})
        if not subject.is_stored:
            return count_facts(checks, self._counts_of_additions(condition))
        caller = Caller(condition.client_id, Role.ADMIN, None, None, "A-admin")
        counts, newest, document = await self._measures[subject.name](caller, condition.channel, id, condition.user)
        latest = {"latest": msgspec.json.decode(newest)} if newest else {}
        if condition.since is None:
            return count_facts(checks, counts) | document_facts(checks, document) | latest
        noted = self._counts_of_additions(condition)
        writes = {"writes": sum(noted.values())}
        return count_facts(checks, noted) | document_facts(checks, document) | writes | latest

    def _counts_of_additions(self, condition: Condition) -> dict[str, int]:
        """Count the votes or entries added after the change numbered by the condition's mark, by value."""
        counts: dict[str, int] = {}
        for change in self._changes.since(condition.since or 0, condition.kind, condition.concerns):
            if change.did == condition.id if condition.subject.events else change.did not in _NOT_COUNTED:
                value = "" if change.value is None else str(change.value)
                counts[value] = counts.get(value, 0) + change.times
        return counts

    def _build_outcome(self, condition: Condition, found: dict[str, Any], entries: EntryCount | None) -> Outcome:
        names = condition.wanted()
        return Outcome(
            condition.is_met(found),
            names,
            {name: value for name, value in found.items() if name in names},
            [_listed_entry(entry) for entry in entries.latest(_LISTED)]
            if entries
            else [_listed_change(change) for change in self._changes.latest(condition.kind, _LISTED)],
            self._journal.mark if entries else self._changes.mark,
        )


def _listed_entry(entry: Entry) -> ListedChange:
    caller = entry.caller
    did, value = ("delivered", entry.delivered) if entry.kind == DELIVERY else ("answered", entry.status)
    who = (caller.client_id, caller.channel_id or "", caller.opaque_id) if caller else ("", "", "")
    return ListedChange(entry.number, entry.at, "journal", entry.name, *who, did, value)


def _listed_change(change: Change) -> ListedChange:
    key = change.key
    return ListedChange(
        change.mark, change.at, key.kind, key.name, key.owner, key.channel or "", change.user, change.did, change.value
    )
