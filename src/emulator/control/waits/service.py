"""Waits for conditions: evaluates each at once, and again after each change that may meet it."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass
from itertools import islice
from typing import Any

from msgspec import Struct

from emulator.control.journal.rules import predicate
from emulator.control.sockets import Sockets
from emulator.control.waits.rules import (
    DEFAULT_TIMEOUT,
    FILTERS,
    MAX_TIMEOUT,
    Condition,
    parse_condition,
    parse_timeout,
    subjects_of,
)
from emulator.core.callers import Caller, Role
from emulator.core.changes import Change, Changes
from emulator.core.clock import SECOND, monotonic
from emulator.core.errors import BadRequest, Facts, refusal
from emulator.core.journal import DELIVERY, Entry, Journal, no_journal
from emulator.features.kinds import Kind, Measure, Measured, Subject
from emulator.http.endpoint import Call, Endpoint, Parameter, control_endpoint


@refusal(
    BadRequest,
    "Malformed since parameter",
    "docs: Waits",
    "The mark cannot be used",
    "Take a new mark just before the wait: `extcli wait mark`.",
)
def mark_unusable(*, since: int, problem: str) -> Facts:
    return Facts(f"since: {since} {problem}", f"since {since}", "a mark of this run of the service")


ANY_ENDPOINT = "*"
"""The id of a condition about all endpoints."""
_ENTRIES_PER_STEP = 500
"""Entries looked at before other requests run."""


class EntryCounter:
    """Counts entries after a mark that have an endpoint and meet the filters of a query."""

    def __init__(self, journal: Journal, condition: Condition, query: Mapping[str, str]) -> None:
        """The id of the condition is `POST /v1/e/vote`, its path alone, an action, a topic or `*`.

        Raises `BadRequest`, and `Forbidden` if there is no journal.
        """
        if not journal.is_on:
            raise no_journal()
        since = condition.since
        _check_mark(since, journal.mark, "entry", is_kept=not since or not journal.count_lost_since(since))
        self._journal = journal
        self._matches = predicate({**query, "id": ""})  # in a query for entries, it would be a request id
        self._id = condition.id
        self._seen = since or 0
        self._count = 0

    async def count(self) -> int:
        """Count new entries, and return the total so far.

        Entries that the journal dropped before they were counted are missing.
        """
        matches = self._matches
        while entries := self._journal.since(self._seen, _ENTRIES_PER_STEP):
            self._seen = entries[-1].number
            self._count += sum(matches(entry) for entry in entries if self._is_about(entry))
            await asyncio.sleep(0)
        return self._count

    def latest(self, limit: int) -> list[Entry]:
        """Return the latest entries of the endpoint, whether they meet the filters or not, oldest first."""
        newest = filter(self._is_about, self._journal.newest())
        return list(islice(newest, limit))[::-1]

    def _is_about(self, entry: Entry) -> bool:
        return self._id in (ANY_ENDPOINT, entry.name, entry.name.partition(" ")[2])


def _check_mark(since: int | None, latest: int, what: str, *, is_kept: bool) -> None:
    """Refuse a mark after the latest one, or after which not everything is kept."""
    if since is not None and since > latest:
        numbers = "numbers" if what == "entry" else "marks"
        problem = f"is after the latest {what}, {latest}; {numbers} start over when the service starts"
        raise mark_unusable(since=since, problem=problem)
    if since is not None and not is_kept:
        raise mark_unusable(since=since, problem="is too old; take a new mark just before the wait")


_MAX_LISTED = 3
"""Changes in a response."""
_UNCOUNTED_CHANGES = ("cleared", "defined")
_CHECK_INTERVAL = 0.05
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


class WaitOutcome(Struct):
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


@dataclass(eq=False, repr=False)
class Waits:
    """Waits for conditions."""

    _changes: Changes
    _subjects: Mapping[str, Subject]
    _measures: Mapping[str, Measure]
    """By subject, for those that are stored."""
    _sockets: Sockets
    _journal: Journal
    _: KW_ONLY
    is_alone: bool
    """Whether no other process can change the data."""

    async def wait(self, call: Call) -> WaitOutcome:
        """Wait until a condition is met. At the timeout, `met` is false."""
        query = call.query
        condition = parse_condition(query, self._subjects)
        deadline = monotonic() + parse_timeout(query.get("timeout", "")) / SECOND
        source: Journal | Changes = self._changes
        entries = None
        if condition.subject.name == "journal":
            source = self._journal
            entries = EntryCounter(self._journal, condition, query)
        with source.watching() as changed:
            while True:
                changed.clear()
                if entries is None:
                    is_kept = self._changes.has_all_since(condition.since or 0, condition.kind)
                    _check_mark(condition.since, self._changes.mark, "mark", is_kept=is_kept)
                measured = Measured({"": await entries.count()}) if entries else await self._measure(condition)
                found = condition.values(measured)
                left, is_met = deadline - monotonic(), condition.is_met(found)
                if is_met or left <= 0:
                    return WaitOutcome(is_met, condition.wanted(), found, self._latest(condition, entries), source.mark)
                with suppress(TimeoutError):
                    async with asyncio.timeout(left if self.is_alone else min(left, _CHECK_INTERVAL)):
                        await changed.wait()

    async def _measure(self, condition: Condition) -> Measured:
        """Return what the checks of a condition compare; of stored things, with a mark, the counts of additions."""
        subject, id = condition.subject, condition.id
        if subject.name == "sockets":
            return Measured({"": self._sockets.count(id, condition.client_id, condition.channel)})
        if not subject.is_stored:
            return Measured(self._counts_of_additions(condition))
        caller = Caller(condition.client_id, Role.ADMIN, None, None, "A-admin")
        measured = await self._measures[subject.name](caller, condition.channel, id, condition.user)
        if condition.since is None:
            return measured
        return measured._replace(counts=self._counts_of_additions(condition))

    def _counts_of_additions(self, condition: Condition) -> dict[str, int]:
        """Count the votes or entries added after the change numbered by the condition's mark, by value."""
        counts: Counter[str] = Counter()
        for change in self._changes.since(condition.since or 0, condition.kind, condition.concerns):
            is_counted = change.did not in _UNCOUNTED_CHANGES
            if condition.subject.events:
                is_counted = change.did == condition.id
            if is_counted:
                counts["" if change.value is None else str(change.value)] += change.times
        return counts

    def _latest(self, condition: Condition, entries: EntryCounter | None) -> list[ListedChange]:
        if entries:
            return [_change_of_entry(entry) for entry in entries.latest(_MAX_LISTED)]
        return [_change_for_response(change) for change in self._changes.latest(condition.kind, _MAX_LISTED)]


def _change_of_entry(entry: Entry) -> ListedChange:
    caller = entry.caller
    did, value = ("delivered", entry.delivered) if entry.kind == DELIVERY else ("answered", entry.status)
    who = (caller.client_id, caller.channel_id or "", caller.opaque_id) if caller else ("", "", "")
    return ListedChange(entry.number, entry.at, "journal", entry.name, *who, did, value)


def _change_for_response(change: Change) -> ListedChange:
    key = change.key
    return ListedChange(
        change.mark, change.at, key.kind, key.name, key.owner, key.channel or "", change.user, change.did, change.value
    )


_OWN = {"user", "path"}
"""Filters that other conditions also have."""
_PARAMETERS = (
    Parameter(
        "id",
        "The id of a poll, ranking, buffer or JSON store, the name of another store, an event, a topic, or an endpoint "
        "such as `POST /v1/e/vote`.",
    ),
    Parameter("client_id", "The client id of the extension. Optional for sockets and the journal."),
    Parameter("channel_id", "The channel. Default: all channels together."),
    Parameter("user", "The user of a viewer store, or of journal entries."),
    Parameter("count", "The number of votes, answers, entries, events or sockets: `3` is at least 3, `=3` exactly 3."),
    Parameter("value", "The votes of a poll by value: `0=2,1==3` is at least two votes for 0 and exactly three for 1."),
    Parameter("sum", "The sum of the values of a poll, written like `count`."),
    Parameter("key", "An answer of a ranking."),
    Parameter("score", "The number of users with the answer `key`, written like `count`. Default: at least 1."),
    Parameter("latest", "The newest entry of a buffer, as JSON."),
    Parameter("path", "A JSON pointer into a store. Default: the whole store. For the journal, a part of the path."),
    Parameter("equals", "The value at `path`, as JSON. Default: any value."),
    Parameter("since", "A mark from `X-Emulator-Mark`: only later changes count. For the journal, an entry's number."),
    *(Parameter(name, "A filter of the journal, as in `GET /_emulator/journal`.") for name in sorted(FILTERS - _OWN)),
    Parameter("timeout", f"Longest wait in real ms, at most {MAX_TIMEOUT:,}. Default: {DEFAULT_TIMEOUT:,}.", "integer"),
)


def endpoints_of(kinds: Iterable[Kind]) -> tuple[Endpoint, ...]:
    """Return the endpoint with the subjects of these kinds."""
    about = Parameter("for", f"What the condition is about: {', '.join(subjects_of(kinds))}.")
    declare = control_endpoint("GET", "/_emulator/wait", query=(about, *_PARAMETERS), answer=WaitOutcome, held=True)
    return (declare(Waits.wait),)
