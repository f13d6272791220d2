"""Limits the ids of an extension in one channel, since viewers create polls, rankings and buffers by naming them.

Ids that viewers begin count apart from owners' ids, and the ids of one viewer are limited too (ruling W10). All
nodes share one document per id, and one per kind, extension and channel with the number of ids that end in each hour:
for the owners, for all viewers, and for each viewer. So the cost of a new id does not depend on how many there are. A
node skips ids that it recorded recently, so the limit is approximate and a vote usually costs one dictionary lookup.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import TypeVar

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
Write = Callable[[], Awaitable[Result]]

_ID_KIND = "ids/"
"""The kind of an id's document begins with this. It holds the Unix ms until which the id counts, and the viewer who
began it, or an empty text if an owner did."""
_COUNTS_KIND = "id_counts"
_RELEASED_ID = b'[0,""]'
"""The document of an id that no longer counts, until it is deleted."""
_VIEWER_SHARES = 4
"""One viewer may begin this fraction of the ids that viewers may begin."""

_RECORD_AGAIN_AFTER = HOUR
_MAX_CACHED = 100_000

_decode_id = msgspec.json.Decoder(tuple[int, str]).decode
_decode_counts = msgspec.json.Decoder(dict[int, int]).decode
"""The number of ids, by the Unix ms until which they count: the end of an hour."""


def is_quota_record(key: Key) -> bool:
    """Whether a document belongs to the quota."""
    return key.kind.startswith(_ID_KIND) or key.kind == _COUNTS_KIND


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

    def write(self, key: Key, caller: Caller, lifetime: int, now: int, write: Write[Result]) -> Awaitable[Result]:
        """Count the id of `key` for `lifetime` ms from `now`, and return the result of `write`.

        To be awaited at once. Raises `BadRequest` above the limit. If nothing is written, because `write` raises, or
        returns false or a refused cast, an id that it would have begun does not count.
        """
        if caller.role is Role.VIEWER and self._is_recent(key, now):
            return write()
        return self._count_and_write(key, caller, now, now + lifetime, write)

    async def release(self, key: Key) -> None:
        """Stop counting the id of `key`."""
        self._recorded.pop(key)
        id, now, is_moved = _id_key(key), self._clock.now(), False
        while not is_moved:  # until no other use comes in between
            known = await self._documents.peek(id, now=now) or _RELEASED_ID
            is_moved = known == _RELEASED_ID or await self._move_to_hour(key, known, 0, _decode_id(known)[1], now)
        await self._documents.drop_equal(id, _RELEASED_ID, now=now)

    def clear(self) -> None:
        """Forget the cached ids, after a reset."""
        self._recorded.clear()

    async def _count_and_write(self, key: Key, caller: Caller, now: int, until: int, write: Write[Result]) -> Result:
        is_new = False
        # An owner looks: if another node has released the id, the next viewer to use it would begin it.
        if not (self._is_recent(key, now) and await self._documents.peek(_id_key(key), now=now)):
            # Uses within the next hour extend the lifetime without being recorded, so count one hour more.
            is_new = await self._count(key, caller, now, until + _RECORD_AGAIN_AFTER)
            self._recorded.renew(key, now)
        try:
            result = await write()
        except Exception:  # after a cancellation, the write may have happened
            if is_new:
                with suppress(EngineError):
                    await self.release(key)
            raise
        if is_new and (result is False or (isinstance(result, Cast) and result.refused)):
            await self.release(key)
        return result

    async def _count(self, key: Key, caller: Caller, now: int, until: int) -> bool:
        """Count the id until then for the viewer or owner who began it, or else for the caller.

        Return whether it is new.
        """
        end = -(-until // HOUR) * HOUR
        while True:  # until no other use comes in between
            known = await self._documents.peek(_id_key(key), now=now) or _RELEASED_ID
            before, who = _decode_id(known)
            if not before:
                who = "" if caller.role in (CHANNEL_WRITERS if key.channel else EXTENSION_WRITERS) else caller.opaque_id
            if await self._move_to_hour(key, known, max(end, before), who, now):
                return not before

    async def _move_to_hour(self, key: Key, known: bytes, until: int, who: str, now: int) -> bool:
        """Count an id of `who`, whose document is `known`, in the hour that ends at `until`; 0 means no longer.

        Return whether that was still its document. Raises `BadRequest` above the limit.
        """
        id, limits, (before, _) = _id_key(key), self._limits_for(key, who), _decode_id(known)

        def change(found: Texts) -> Texts:
            if found.get(id, _RELEASED_ID) != known:
                return {}
            written = {id: json_codec.encode((until, who)) if until else _RELEASED_ID}
            for each, (whose, limit) in limits.items():
                counts = _live_counts(found, each, now)
                if until and before not in counts and (used := sum(counts.values())) >= limit:
                    raise too_many_ids(used=used, whose=whose, channel=key.channel or "", limit=limit)
                written[each] = _move_count(counts, before, until)
            return written

        return bool(await self._documents.update([id, *limits], change, now=now, expires_at=until or now))

    def _is_recent(self, key: Key, now: int) -> bool:
        recorded = self._recorded.get(key)
        return recorded is not None and recorded <= now < recorded + _RECORD_AGAIN_AFTER

    def _limits_for(self, key: Key, who: str) -> dict[Key, tuple[str, int]]:
        """Return the documents that count an id of `who`, each with whose ids these are and their limit."""
        counts = Key(_COUNTS_KIND, key.owner, key.kind, key.channel)
        if not who:
            return {counts: ("owners", self._limit)}
        viewers = counts._replace(name=f"{key.kind}/viewers")
        share = max(1, self._limit // _VIEWER_SHARES)
        return {viewers._replace(user=who): ("this user", share), viewers: ("viewers", self._limit)}


def _id_key(key: Key) -> Key:
    return key._replace(kind=_ID_KIND + key.kind)


def _live_counts(found: Texts, counts: Key, now: int) -> dict[int, int]:
    """Return the counts of ids for the hours that have not ended."""
    by_hour = _decode_counts(found.get(counts, b"{}"))
    return {end: count for end, count in by_hour.items() if end > now}


def _move_count(counts: Mapping[int, int], before: int, after: int) -> bytes:
    """Return the counts by hour after an id has moved from one hour to another; 0 means no hour."""
    moved = Counter(counts)
    moved[before] -= before in counts
    moved[after] += after > 0
    return json_codec.encode(+moved)


STORED = (
    Stored(DocumentRecord, _ID_KIND, decode_check(tuple[int, str])),
    Stored(DocumentRecord, _COUNTS_KIND, decode_check(dict[int, int])),
)
