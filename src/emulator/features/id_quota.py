"""Limits the ids of an extension in one channel, since viewers create polls, rankings and buffers by naming them.

Ids that viewers begin count apart from owners' ids, and the ids of one viewer are limited too (ruling W10). All
nodes share one document per id, and one per kind, extension and channel with the number of ids that end in each hour:
for the owners, for all viewers, and for each viewer. So the cost of a new id does not depend on how many there are. A
node skips ids that it recorded recently, so the limit is approximate and a vote usually costs one dictionary lookup.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Coroutine, Mapping
from contextlib import suppress
from typing import Any, TypeVar

import msgspec

from emulator.core.bounded_cache import BoundedCache
from emulator.core.callers import CHANNEL_WRITERS, EXTENSION_WRITERS, Caller, Role
from emulator.core.clock import HOUR, Clock
from emulator.core.errors import EngineError
from emulator.core.keys import Key
from emulator.core.limits import too_many_ids
from emulator.core.wire import json_codec
from emulator.storage.kinds import Stored, decode_check
from emulator.storage.records import DocumentRecord
from emulator.storage.shapes import Cast, Documents, Texts

Result = TypeVar("Result")
Work = Coroutine[Any, Any, Result]

_ID = "ids/"
"""The kind of an id's document begins with this. It holds the Unix ms until which the id counts, and the viewer who
began it, or an empty text if an owner did."""
_COUNTS = "id_counts"
_RELEASED = b'[0,""]'
"""The document of an id that no longer counts, until it is deleted."""
_SHARES = 4
"""One viewer may begin this fraction of the ids that viewers may begin."""
_VIEWER = Role.VIEWER
_REFRESH_AFTER = HOUR
_MAX_CACHED = 100_000

_id = msgspec.json.Decoder(tuple[int, str])
_counts = msgspec.json.Decoder(dict[int, int])
"""The number of ids, by the Unix ms until which they count: the end of an hour."""


def is_quota_record(key: Key) -> bool:
    """Whether a document belongs to the quota."""
    return key.kind.startswith(_ID) or key.kind == _COUNTS


class IdQuota:
    """Allows owners `limit` ids per kind, extension and channel, viewers as many, and one viewer a quarter of these.

    An id counts for the one who began it, up to two hours longer than its lifetime.
    """

    def __init__(self, documents: Documents, clock: Clock, limit: int) -> None:
        self._documents = documents
        self._clock = clock
        self._limit = limit
        self._recorded: BoundedCache[Key, int] = BoundedCache(_MAX_CACHED)
        """When this process last recorded an id, in Unix ms."""

    def write(self, key: Key, caller: Caller, lifetime: int, now: int, work: Work[Result]) -> Work[Result]:
        """Count the id of `key` for `lifetime` ms from `now`, and return the result of `work`, which writes it.

        To be awaited at once. Raises `BadRequest` above the limit. If `work` raises, or returns a refused cast, an id
        that it would have begun does not count.
        """
        if caller.role is _VIEWER and self._is_recent(key, now):
            return work
        return self._count_and_write(key, caller, lifetime, now, work)

    async def release(self, key: Key) -> None:
        """Stop counting the id of `key`."""
        self._recorded.pop(key)
        id, now = _id_of(key), self._clock.now()
        _, who = _id.decode(await self._documents.peek(id, now=now) or _RELEASED)
        limits = self._limits_of(key, who)

        def remove(found: Texts) -> Texts:
            until, holder = _id.decode(found.get(id, _RELEASED))
            if not until or holder != who:
                return {}
            counts = {each: _live_counts(found, each, now) for each in limits}
            return {id: _RELEASED} | {each: _moved(counts[each], until, 0) for each in limits}

        await self._documents.update([id, *limits], remove, now=now, expires_at=now)
        await self._documents.drop_equal(id, _RELEASED, now=now)

    def clear(self) -> None:
        """Forget the cached ids, after a reset."""
        self._recorded.clear()

    async def _count_and_write(self, key: Key, caller: Caller, lifetime: int, now: int, work: Work[Result]) -> Result:
        is_new = False
        try:
            # An owner looks: if another node has released the id, the next viewer to use it would begin it.
            if not (self._is_recent(key, now) and await self._documents.peek(_id_of(key), now=now)):
                who = "" if caller.role in (CHANNEL_WRITERS if key.channel else EXTENSION_WRITERS) else caller.opaque_id
                # Uses within the next hour extend the lifetime without being recorded, so record one hour more.
                is_new = await self._record(key, who, now, now + lifetime + _REFRESH_AFTER)
                self._recorded.renew(key, now)
            result = await work
        except Exception:  # after a cancellation, the write may have happened
            if is_new:
                with suppress(EngineError):
                    await self.release(key)
            raise
        finally:
            work.close()  # it has not begun if the id is over the limit
        if is_new and isinstance(result, Cast) and result.refused:
            await self.release(key)
        return result

    async def _record(self, key: Key, who: str, now: int, until: int) -> bool:
        """Count the id until then: for the viewer or owner that it counts for already; if there is none, for `who`.

        Return whether it is new.
        """
        id, end = _id_of(key), -(-until // HOUR) * HOUR
        holder, is_new = who, False

        def add(found: Texts) -> Texts:
            nonlocal holder, is_new
            before, holder = 0, who
            if found.get(id, _RELEASED) != _RELEASED:
                before, holder = _id.decode(found[id])
            if holder != who:
                return {}
            counts = {each: _live_counts(found, each, now) for each in limits}
            for each, (whose, limit) in limits.items():
                if before not in counts[each] and (used := sum(counts[each].values())) >= limit:
                    raise too_many_ids(used=used, whose=whose, channel=key.channel or "", limit=limit)
            is_new, latest = not before, max(end, before)
            return {id: json_codec.encode((latest, who))} | {
                each: _moved(counts[each], before, latest) for each in counts
            }

        while True:
            limits = self._limits_of(key, who)
            await self._documents.update([id, *limits], add, now=now, expires_at=end)
            if holder == who:
                return is_new
            who = holder

    def _is_recent(self, key: Key, now: int) -> bool:
        recorded = self._recorded.get(key)
        return recorded is not None and recorded <= now < recorded + _REFRESH_AFTER

    def _limits_of(self, key: Key, who: str) -> dict[Key, tuple[str, int]]:
        """Return the documents that count an id of `who`, each with whose ids these are and their limit."""
        counts = Key(_COUNTS, key.owner, key.kind, key.channel)
        if not who:
            return {counts: ("owners", self._limit)}
        viewers = counts._replace(name=f"{key.kind}/viewers")
        share = max(1, self._limit // _SHARES)
        return {viewers._replace(user=who): ("this user", share), viewers: ("viewers", self._limit)}


def _id_of(key: Key) -> Key:
    return key._replace(kind=_ID + key.kind)


def _live_counts(found: Texts, counts: Key, now: int) -> dict[int, int]:
    """Return the counts of ids for the hours that have not ended."""
    by_hour = _counts.decode(found.get(counts, b"{}"))
    return {end: count for end, count in by_hour.items() if end > now}


def _moved(counts: Mapping[int, int], before: int, after: int) -> bytes:
    """Return the counts by hour after an id has moved from one hour to another; 0 means no hour."""
    moved = Counter(counts)
    moved[before] -= before in counts
    moved[after] += after > 0
    return json_codec.encode(+moved)


STORED = (
    Stored(DocumentRecord, _ID, decode_check(tuple[int, str])),
    Stored(DocumentRecord, _COUNTS, decode_check(dict[int, int])),
)
