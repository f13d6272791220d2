"""The accumulation service: buffers of small JSON blobs."""

from __future__ import annotations

from collections.abc import AsyncIterator
from operator import attrgetter
from typing import Final, NamedTuple

import msgspec
from msgspec import Raw, Struct

from emulator.callers import Caller
from emulator.changes import Change, Commits
from emulator.clock import DAY, Clock, clamp_instant
from emulator.engines.shapes import Key, Logs
from emulator.features.accumulation.refusals import document_too_large
from emulator.features.accumulation.rules import LIMIT, STORED, BufferEntry
from emulator.hints import Hints
from emulator.kinds import Kind, Measured, Shape, Subject
from emulator.limits.id_quota import IdQuota
from emulator.limits.listing_pages import Page
from emulator.wire import json_codec

LIFETIME = DAY
"""An entry expires after this many ms (ruling R2)."""


class Entries(NamedTuple):
    """The entries that a call reads."""

    latest: int
    """Unix ms of the newest entry in the caller's scope, even if it is before `start`; 0 if there is none."""
    pages: AsyncIterator[list[bytes]]
    """Pages of entries as JSON, newest first."""


class ListedBuffer(Struct):
    """One buffer."""

    id: str
    channel_id: str
    """Empty for entries that belong to no channel."""
    count: int
    """Its entries."""
    latest: int
    """Unix ms of the newest."""


class BufferList(Struct):
    """Buffers by channel, then id."""

    buffers: list[ListedBuffer]
    next: str
    """The cursor of the next page; `0` if there is none."""


class Buffers:
    """Buffers of all extensions. `channel` is the channel of the call; `None` is all channels together (ruling A4)."""

    def __init__(self, logs: Logs, clock: Clock, id_quota: IdQuota, commits: Commits, hints: Hints) -> None:
        self._logs = logs
        self._clock = clock
        self._id_quota = id_quota
        self._commits = commits
        self._hints = hints

    async def add(self, caller: Caller, channel: str | None, buffer_id: str, value: object) -> None:
        """Append a blob with its poster and time; raises `BadRequest` if it is 256 bytes or more."""
        now = self._clock.now()
        entry = BufferEntry(
            observed=now,
            channel_id=channel or "",
            opaque_id="" if caller.user_id else caller.opaque_id,
            opaque_user_id=caller.opaque_id,
            user_id=caller.user_id or "",
            data=Raw(_checked_blob(value)),
        )
        key = Key("accumulate", caller.client_id, buffer_id, channel or "")
        await self._id_quota.claim(key, LIFETIME, now=now)
        await self._logs.append(key, json_codec.encode(entry), now=now, expires_at=now + LIFETIME)
        await self._commits.committed(Change(key, "entry", caller.opaque_id, at=now))

    async def read(self, caller: Caller, channel: str | None, buffer_id: str, start: int) -> Entries:
        """Return the entries added at or after `start` (Unix ms)."""
        key = Key("accumulate", caller.client_id, buffer_id, channel)
        latest, pages = await self._logs.read(key, now=self._clock.now(), since=clamp_instant(start))
        if not latest:
            await self._hints.hint_if_absent(key)
        return Entries(latest, ([item.value for item in page] async for page in pages))

    async def measure(self, caller: Caller, channel: str | None, id: str, user: str) -> Measured:
        count, newest = 0, b""
        async for page in (await self.read(caller, channel, id, 0)).pages:
            if page and not count:
                newest = bytes(msgspec.json.decode(page[0], type=BufferEntry).data)
            count += len(page)
        return Measured({"": count}, newest)

    async def listing(self, caller: Caller, channel: str | None, page: Page) -> BufferList:
        """Return one page of the buffers that are not empty, of one channel or of all."""
        group = Key("accumulate", caller.client_id, "", channel)
        found = await self._logs.listing(group, now=self._clock.now(), limit=page.limit + 1, after=page.after(group))
        return BufferList(
            [
                ListedBuffer(key.name, key.channel or "", entries, latest)
                for key, entries, latest in found[: page.limit]
            ],
            page.next(found),
        )


def _checked_blob(value: object) -> bytes:
    """Return the blob as compact JSON; raises `BadRequest` if it is 256 bytes of UTF-8 or more."""
    blob = json_codec.encode(value)
    if len(blob) >= LIMIT:
        raise document_too_large(size=len(blob), limit=LIMIT)
    return blob


BUFFERS: Final = Kind(
    "buffers",
    "the buffers, with their entries",
    ("accumulate",),
    Shape.LOGS,
    LIFETIME,
    "buffers",
    STORED,
    waits_for=Subject("accumulate", "accumulate", frozenset({"count", "latest"}), "default"),
    measure=attrgetter("buffers.measure"),
)
