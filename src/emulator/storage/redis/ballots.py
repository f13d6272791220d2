"""Ballots and logs on Redis. Concurrent casts for one ballot share one script call.

It returns the counts before them and what each changes, and so the tally after each. Entries of logs never change, so a
reading stops at the newest number when it began.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Any
from weakref import WeakValueDictionary

import msgspec
from msgspec import UNSET

from emulator.core.keys import Key
from emulator.storage.counts import SortedCounts
from emulator.storage.merging import Row, merged_items, merged_pages
from emulator.storage.redis.client import Client, QueuedOperation, Reply, Script
from emulator.storage.redis.keys import CHANNEL_LAST, listing_range, parse_place
from emulator.storage.shapes import (
    EMPTY_TALLY,
    BallotEntry,
    Cast,
    CastRequest,
    ListedBallot,
    ListedLog,
    LogPages,
    OldDefinition,
    Tally,
    Terms,
)

LISTING_STEP = 50
"""Things that one operation of a listing looks at."""
_decode = msgspec.msgpack.decode
_MAX_CASTS = 250
"""Casts in one operation, which blocks all other clients of Redis."""


class _CastBatch:
    """Casts for one ballot that share an operation."""

    def __init__(self, operation: QueuedOperation) -> None:
        self._operation = operation
        self._choices: list[tuple[str, bool]] = []
        """The choice of each cast, and whether it wants a tally."""
        self._outcomes: list[Cast] = []

    def is_full(self) -> bool:
        return self._operation.is_sent or len(self._choices) >= _MAX_CASTS

    async def add(self, request: CastRequest, now: int, expires_at: int, tally: bool) -> Cast:
        """Add a cast and return its outcome."""
        voter, choice, note, known, times = request
        self._operation.add((voter, choice, note, known, times, now, expires_at, tally))
        place = len(self._choices)
        self._choices.append((choice, tally))
        reply = await asyncio.shield(self._operation.result)  # to cancel one does not affect the others
        self._outcomes = self._outcomes or self._parse_outcomes(reply)
        return self._outcomes[place]

    def _parse_outcomes(self, reply: Sequence[Reply]) -> list[Cast]:
        """Return the outcome of each cast, with the counts at its time."""
        counts = _parse_counts(reply[1])
        casts = []
        for (choice, wants_tally), row in zip(self._choices, _decode(reply[0]), strict=True):
            refused, previous, ballot, *changes = row
            if ballot == "fresh":
                counts = SortedCounts()
            for changed, count, since in zip(changes[::3], changes[1::3], changes[2::3], strict=True):
                counts.set_count(changed, count, int(since))
            previous = None if previous is False else previous
            after = EMPTY_TALLY
            if wants_tally and ballot != "none":
                after = Tally(counts.largest(), previous if refused else choice)
            casts.append(Cast(refused or None, previous, after))
        return casts


def _parse_counts(flat: Sequence[bytes]) -> SortedCounts:
    """Return the counts in the members and scores of a ballot's sorted set.

    A member is the number of the choice's first cast since it last had none, of 16 digits, then the choice. A score is
    minus the count.
    """
    pairs = zip(flat[::2], flat[1::2], strict=True)
    return SortedCounts((member[16:].decode(), -int(score), int(member[:16])) for member, score in pairs)


def parse_entry(row: Row) -> BallotEntry:
    """Return the entry of a row of a page."""
    at, _, voter, choice, times, note = row
    return BallotEntry(voter.decode(), choice.decode(), times, at, note)


class _GroupListings:
    """Base of ballots and of logs, of which some operations cover all channels."""

    _script: Script
    _listed: type[ListedBallot | ListedLog]
    """Takes the key of a thing, and what the script's `describe` returns."""

    async def listing(
        self, group: Key, *, now: int, limit: int, after: Key | None = None, matching: str = ""
    ) -> list[Any]:
        found: list[Any] = []
        index, first, last = listing_range(group, after)
        while len(found) < limit:
            most = LISTING_STEP if matching else min(LISTING_STEP, limit - len(found))
            place, *rows = await self._script.run("listing", index, first, last, now, most, matching)
            found += [self._listed(parse_place(group, name), *row) for name, *row in rows]
            if not place:
                break
            first = f"({place.decode()}"
        return found[:limit]

    async def _begin_reading(self, key: Key, now: int) -> Reply:
        """Return a bound after all present rows, and what else the script needs to read the things of a key."""
        is_group = key.channel is None
        return await self._script.run("begin", CHANNEL_LAST.group(key) if is_group else key, is_group, now)


class RedisBallots(_GroupListings):
    _listed = ListedBallot

    def __init__(self, client: Client) -> None:
        self._script = client.script("ballots", CHANNEL_LAST)
        self._casts: WeakValueDictionary[Key, _CastBatch] = WeakValueDictionary()
        """The latest of each ballot, while one of them waits."""

    async def define(
        self,
        key: Key,
        definition: bytes,
        terms: Terms,
        *,
        now: int,
        expires_at: int,
        only_if: OldDefinition = UNSET,
        clear: bool = False,
    ) -> bool:
        condition = (False, None) if only_if is UNSET else (True, only_if)
        return bool(await self._script.run("define", key, definition, terms, expires_at, now, *condition, clear))

    async def definition(self, key: Key, *, now: int) -> bytes | None:
        found: bytes | None = await self._script.run("definition", key, now)
        return found

    async def cast(self, key: Key, request: CastRequest, *, now: int, expires_at: int, tally: bool = False) -> Cast:
        casts = self._casts.get(key)
        if casts is None or casts.is_full():
            self._casts[key] = casts = _CastBatch(self._script.start("cast", key))
        cast = await casts.add(request, now, expires_at, tally)
        if cast.refused == "times":
            raise ValueError(f"times must be at least 1, not {request.times}")
        return cast

    async def tally(self, key: Key, *, now: int, voter: str | None = None, top: int | None = None) -> Tally:
        if key.channel is None:
            rows, choice = await self._script.run("tally_all_channels", CHANNEL_LAST.group(key), voter, now)
            rows.sort(key=lambda row: (-row[1], row[2]))
            counts = tuple((name.decode(), count) for name, count, _ in rows[:top])
        else:
            rows, choice = await self._script.run("tally", key, top, voter, now)
            counts = _parse_counts(rows).largest()
        return Tally(counts, None if choice is None else choice.decode())

    async def entries(
        self, key: Key, *, now: int, since: int = 0, limit: int | None = None
    ) -> AsyncIterator[Sequence[BallotEntry]]:
        bound, *ids = await self._begin_reading(key, now)
        fetches = [self._script.page_reader(b"[%016d" % since, id, bound) for id in ids]
        async for rows in merged_pages(fetches, limit):
            yield [parse_entry(row) for row in rows]

    async def drop(self, key: Key, *, now: int) -> list[Key]:
        if key.channel is None:
            found = await self._script.run("drop_all_channels", CHANNEL_LAST.group(key))
            return [CHANNEL_LAST.parse(text) for text in found]
        await self._script.run("drop", key)
        return [key]


class RedisLogs(_GroupListings):
    _listed = ListedLog

    def __init__(self, client: Client) -> None:
        self._script = client.script("logs", CHANNEL_LAST)

    async def append(self, key: Key, value: bytes, *, now: int, expires_at: int) -> None:
        await self._script.run("append", key, now, expires_at, value)

    async def read(self, key: Key, *, now: int, since: int = 0) -> LogPages:
        bound, latest, *logs = await self._begin_reading(key, now)
        fetches = [self._script.page_reader(b"+", log, bound, since, now) for log in logs]
        return LogPages(latest, merged_items(fetches))
