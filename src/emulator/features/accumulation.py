"""Accumulation: small JSON blobs, collected in order of arrival (rulings R2, R3)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import msgspec
from msgspec import Raw, Struct

from emulator.core.bounded_cache import BoundedCache
from emulator.core.callers import ANYONE, CHANNEL_WRITERS, Caller, Role
from emulator.core.changes import Change, Changes
from emulator.core.clock import DAY, Clock, clamp_instant
from emulator.core.errors import BadRequest, Facts, TooManyRequests, refusal
from emulator.core.keys import Key
from emulator.core.limits import whole_seconds
from emulator.core.observability.facts import ABSENT, notice
from emulator.core.wire import json_codec
from emulator.core.wire.json_codec import stream_array
from emulator.features.id_quota import IdQuota
from emulator.features.kinds import Kind, ListedRecord, Measured, Subject
from emulator.http.endpoint import CHANNEL, PAGE, Call, Nothing, Parameter, endpoint, id_of
from emulator.storage.kinds import VALUE, Stored, decoded, wrong
from emulator.storage.records import ItemRecord
from emulator.storage.shapes import LogPages, Logs


@refusal(BadRequest, "Body too large", "R3", "The document is too large for a buffer",
         "Send less, or keep the data in a store: `extcli state set`.")  # fmt: skip
def document_too_large(*, size: int) -> Facts:
    detail = f"the body is {size} bytes as compact JSON; it must be under {MAX_ENTRY_BYTES}"
    return Facts(detail, f"{size} bytes of compact JSON", f"under {MAX_ENTRY_BYTES} bytes")


@refusal(TooManyRequests, "Too many entries", "R2", "The user adds too many entries to buffers",
         "Wait {seconds} s and send less often, or add the entries as admin or backend.")  # fmt: skip
def too_many_entries(*, role: str, limit: int, seconds: int) -> Facts:
    detail = f"a {role} may add at most {limit} entries a day to the buffers of an extension; retry in {seconds} s"
    return Facts(detail, f"more than {limit} entries", f"a wait of {seconds} s before the next entry", (), seconds)


MAX_ENTRY_BYTES = 256
"""A blob must be under this many bytes (ruling R3)."""
MAX_ENTRIES_PER_DAY = {Role.VIEWER: 5_000, Role.BROADCASTER: 50_000}
"""Entries that one user adds to all buffers of an extension in a day of UTC. As they live for a day, at most twice as
many are alive. Servers (admin and backend) have no limit."""


class BufferEntry(Struct):
    """One entry of a buffer, as GET returns it."""

    observed: int
    channel_id: str
    opaque_id: str
    """Empty if `user_id` is set."""
    opaque_user_id: str
    """Always set."""
    user_id: str
    """Empty if the user does not share it."""
    data: Raw


def _check_entry(record: ItemRecord) -> None:
    entry = decoded(record.value, BufferEntry, VALUE)
    if len(entry.data) >= MAX_ENTRY_BYTES:
        raise wrong(VALUE, f"data: {len(entry.data)} bytes; the limit is {MAX_ENTRY_BYTES - 1}")
    if entry.observed != record.at:
        raise wrong(VALUE, f"observed: {entry.observed} differs from the time of the entry, {record.at}")


LIFETIME = DAY
"""An entry expires after this many ms (ruling R2)."""
_MAX_COUNTED_USERS = 100_000
"""Users whose entries are counted: those who added one last."""


class ListedBuffer(ListedRecord):
    """One buffer; `count` is the number of entries."""


class BufferList(Struct):
    """Buffers by channel, then id."""

    buffers: list[ListedBuffer]
    next: str
    """The cursor of the next page; `0` if there is none."""


class Buffer(Struct):
    """The entries of a buffer, newest first."""

    data: list[BufferEntry]
    latest: int
    """Unix ms of the newest entry in the caller's scope; 0 if there is none."""


_BUFFER = id_of("buffer")
_START = Parameter("start", "Only entries added at or after this Unix time in ms.", "integer")


@dataclass(eq=False, repr=False)
class Buffers:
    """Buffers of all extensions. The channel of a call is `None` for all channels together (ruling A4)."""

    _logs: Logs
    _clock: Clock
    _id_quota: IdQuota
    _changes: Changes

    def __post_init__(self) -> None:
        self.added: BoundedCache[tuple[int, str, str], int] = BoundedCache(_MAX_COUNTED_USERS)
        """The entries of users, by day, client id and opaque id."""

    @endpoint("POST", "/v1/e/accumulate", roles=ANYONE, body=Any, query=(_BUFFER, CHANNEL))
    async def add_to_buffer(self, call: Call) -> Nothing:
        """Add a JSON value to a buffer; the limit is 255 bytes of compact JSON."""
        caller, channel, buffer_id = call.caller, call.channel or "", call.checked_id
        blob, now = json_codec.encode(call.any_body()), self._clock.now()
        if len(blob) >= MAX_ENTRY_BYTES:
            raise document_too_large(size=len(blob))
        entry = BufferEntry(
            observed=now,
            channel_id=channel,
            opaque_id="" if caller.user_id else caller.opaque_id,
            opaque_user_id=caller.opaque_id,
            user_id=caller.user_id or "",
            data=Raw(blob),
        )
        key = Key("accumulate", caller.client_id, buffer_id, channel)
        user = self._count_entry(caller, now)
        write = partial(self._logs.append, key, json_codec.encode(entry), now=now, expires_at=now + LIFETIME)
        try:
            await self._id_quota.write(key, caller, LIFETIME, now, write)
        except Exception:  # after a cancellation, the entry may be there
            self.added.renew(user, (self.added.get(user) or 1) - 1)
            raise
        await self._changes.committed(Change(key, "entry", caller.opaque_id, at=now))
        return Nothing()

    def _count_entry(self, caller: Caller, now: int) -> tuple[int, str, str]:
        """Count an entry of the caller's day, and return the key of the count. Raises `TooManyRequests`."""
        user = (now // DAY, caller.client_id, caller.opaque_id)
        count, most = self.added.get(user) or 0, MAX_ENTRIES_PER_DAY.get(caller.role)
        if most is not None and count >= most:
            raise too_many_entries(role=caller.role, limit=most, seconds=whole_seconds(DAY - now % DAY))
        self.added.renew(user, count + 1)
        return user

    @endpoint("GET", "/v1/e/accumulate", roles=CHANNEL_WRITERS, answer=Buffer, query=(_BUFFER, CHANNEL, _START))
    async def read_buffer(self, call: Call) -> AsyncIterator[bytes]:
        """Read a buffer, newest first: the caller's channel, or all channels with an extension-level token."""
        start = call.integer("start", 0)
        latest, pages = await self._read(call.caller, call.channel, call.checked_id, start)
        entries = ([item.value for item in page] async for page in pages)
        return stream_array(b'{"data":[', entries, b'],"latest":%d}' % latest)

    async def measure(self, caller: Caller, channel: str | None, id: str, user: str) -> Measured:
        count, newest = 0, None
        _, pages = await self._read(caller, channel, id, 0)
        async for page in pages:
            if page and not count:
                newest = bytes(msgspec.json.decode(page[0].value, type=BufferEntry).data)
            count += len(page)
        return Measured({"": count}, newest)

    async def _read(self, caller: Caller, channel: str | None, buffer_id: str, start: int) -> LogPages:
        """Return the entries added at or after `start` (Unix ms)."""
        key = Key("accumulate", caller.client_id, buffer_id, channel)
        found = await self._logs.read(key, now=self._clock.now(), since=clamp_instant(start))
        if not found.latest:
            notice(ABSENT, key)
        return found

    @endpoint("GET", "/v1/e/buffers", roles=CHANNEL_WRITERS, answer=BufferList, query=PAGE)
    async def list_buffers(self, call: Call) -> BufferList:
        """List the buffers of a channel, or of all channels with an extension-level token.

        The order is channel, then id.
        """
        group, now = Key("accumulate", call.caller.client_id, "", call.channel), self._clock.now()
        found, next = await call.page.read(self._logs.listing, group, now=now)
        buffers = [ListedBuffer(key.name, key.channel or "", *counts) for key, *counts in found]
        return BufferList(buffers, next)


BUFFERS = Kind(
    "buffers",
    "the buffers, with their entries",
    ("accumulate",),
    LIFETIME,
    (Stored(ItemRecord, "accumulate", _check_entry),),
    waits_for=Subject("accumulate", "accumulate", frozenset({"count", "latest"}), "default"),
)
