"""Limits the ids of an extension in one channel, since viewers create polls, rankings and buffers by naming them.

All nodes share one document per id, and one per kind, extension and channel with the number of ids that end in each
hour. So the cost of a new id does not depend on how many there are. A node skips ids that it recorded recently, so the
limit is approximate and a vote usually costs one dictionary lookup.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

from emulator.bounded_cache import BoundedCache
from emulator.clock import HOUR, MINUTE, Clock
from emulator.engines.records import DocumentRecord
from emulator.engines.shapes import Documents, Key
from emulator.limits.refusals import too_many_ids
from emulator.stored import Stored, anything, decode_check
from emulator.wire import json_codec

_ID: Final = "ids/"
"""The kind of an id's document begins with this. It holds the Unix ms until which the id counts."""
_COUNTS: Final = "id_counts"
_RELEASED: Final = b"0"
"""The document of an id that no longer counts, until it is deleted."""
_EARLIER: Final = "ids"
"""The kind of the documents of earlier versions. They are not read: their ids count again when they are used."""
_REFRESH_AFTER: Final = HOUR
_SWEEP_AFTER: Final = 10 * MINUTE
_MAX_CACHED: Final = 100_000

_end = msgspec.json.Decoder(int)
_counts = msgspec.json.Decoder(dict[int, int])
"""The number of ids, by the Unix ms until which they count: the end of an hour."""


def is_quota_record(key: Key) -> bool:
    """Whether a document belongs to the quota. The expiry of such documents is not reported."""
    return key.kind.startswith(_ID) or key.kind in (_COUNTS, _EARLIER)


class IdQuota:
    """Allows `limit` ids per kind, extension and channel. An id counts up to two hours longer than its lifetime."""

    def __init__(self, documents: Documents, clock: Clock, limit: int) -> None:
        self._documents = documents
        self._clock = clock
        self._limit = limit
        self._recorded: BoundedCache[Key, int] = BoundedCache(_MAX_CACHED)
        """When this process last recorded an id, in Unix ms, for the ids of the last hour or a little longer."""
        self._swept_at = 0
        """When the earlier ones were last removed, in Unix ms."""

    async def claim(self, key: Key, lifetime: int, *, now: int) -> None:
        """Count the id of `key` for `lifetime` ms from `now`; raises `BadRequest` above the limit."""
        if _is_recent(self._recorded.get(key), now):
            return
        # Uses within the next hour extend the lifetime without being recorded, so record one hour more.
        await self._record(key, now, now + lifetime + _REFRESH_AFTER)
        self._recorded.renew(key, now)
        if not self._swept_at <= now < self._swept_at + _SWEEP_AFTER:
            self._swept_at = now
            for old in [each for each, recorded in self._recorded.items() if not _is_recent(recorded, now)]:
                self._recorded.pop(old)

    async def release(self, key: Key) -> None:
        """Stop counting the id of `key`."""
        self._recorded.pop(key)
        id, counts, now = _id_of(key), _counts_of(key), self._clock.now()

        def remove(found: Mapping[Key, bytes]) -> Mapping[Key, bytes]:
            if id not in found:
                return {}
            live = _live_counts(found, counts, now)
            return {id: _RELEASED, counts: json_codec.encode(_moved(live, _end.decode(found[id]), None))}

        await self._documents.update([id, counts], remove, now=now, expires_at=now)
        await self._documents.drop_equal(id, _RELEASED, now=now)

    def clear(self) -> None:
        """Forget the cached ids, after a reset."""
        self._recorded.clear()

    async def _record(self, key: Key, now: int, until: int) -> None:
        id, counts, end = _id_of(key), _counts_of(key), -(-until // HOUR) * HOUR

        def add(found: Mapping[Key, bytes]) -> Mapping[Key, bytes]:
            live = _live_counts(found, counts, now)
            before = _end.decode(found[id]) if id in found else None
            latest = end if before not in live else max(end, before)  # the record of the id has the same lifetime
            if before not in live and (used := sum(live.values())) >= self._limit:
                raise too_many_ids(used=used, channel=key.channel or "", limit=self._limit)
            return {id: json_codec.encode(latest), counts: json_codec.encode(_moved(live, before, latest))}

        await self._documents.update([id, counts], add, now=now, expires_at=end)


def _is_recent(recorded: int | None, now: int) -> bool:
    return recorded is not None and recorded <= now < recorded + _REFRESH_AFTER


def _id_of(key: Key) -> Key:
    return key._replace(kind=_ID + key.kind)


def _counts_of(key: Key) -> Key:
    return Key(_COUNTS, key.owner, key.kind, key.channel)


def _live_counts(found: Mapping[Key, bytes], counts: Key, now: int) -> dict[int, int]:
    """Return the counts of ids for the hours that have not ended."""
    return {end: count for end, count in _counts.decode(found.get(counts, b"{}")).items() if end > now}


def _moved(counts: Mapping[int, int], before: int | None, after: int | None) -> dict[int, int]:
    """Return the counts by hour after an id has moved from one hour to another; `None` means no hour."""
    moved = dict(counts)
    if before in moved:
        moved[before] -= 1
        if not moved[before]:
            del moved[before]
    if after is not None:
        moved[after] = moved.get(after, 0) + 1
    return moved


STORED: Final = (
    Stored(DocumentRecord, _ID, decode_check(int)),
    Stored(DocumentRecord, _COUNTS, decode_check(dict[int, int])),
    Stored(DocumentRecord, _EARLIER, anything),
)
