"""Limits the ids of an extension in one channel, since viewers create polls, rankings and buffers by naming them.

One document per kind, extension and channel records the ids for all nodes. A node skips ids that it recorded recently,
so the limit is approximate and a vote usually costs one dictionary lookup.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

from emulator.clock import HOUR, Clock
from emulator.engines.base import Documents, Key
from emulator.errors import BadRequest
from emulator.wire import json_codec

QUOTA_KIND: Final = "ids"
"""The kind of the documents that record ids. Their expiry is not reported."""
_REFRESH_AFTER: Final = HOUR
_MAX_CACHED: Final = 100_000

_ids = msgspec.json.Decoder(dict[str, int])
"""Each id, and the Unix ms until which it counts."""


class IdQuota:
    """Allows `limit` ids per kind, extension and channel."""

    def __init__(self, documents: Documents, clock: Clock, limit: int) -> None:
        self._documents = documents
        self._clock = clock
        self._limit = limit
        self._recorded: dict[Key, int] = {}
        """When this process last recorded an id, in Unix ms."""

    async def claim(self, key: Key, lifetime: int) -> None:
        """Count the id of `key` for `lifetime` ms from now; raises `BadRequest` above the limit."""
        now = self._clock.now()
        recorded = self._recorded.get(key)
        if recorded is not None and recorded <= now < recorded + _REFRESH_AFTER:
            return
        # Uses within the next hour extend the lifetime without being recorded, so record one hour more.
        await self._record(key, now, now + lifetime + _REFRESH_AFTER)
        if len(self._recorded) >= _MAX_CACHED:
            self._recorded.clear()
        self._recorded[key] = now

    async def release(self, key: Key) -> None:
        """Stop counting the id of `key`."""
        self._recorded.pop(key, None)
        document, now = _document_of(key), self._clock.now()
        ids = _decode(await self._documents.read([document], now=now), document)
        if ids.pop(key.name, None) is None:
            return

        def remove(found: Mapping[Key, bytes]) -> Mapping[Key, bytes]:
            remaining = _decode(found, document)
            remaining.pop(key.name, None)
            return {document: json_codec.encode(remaining)}

        await self._documents.update([document], remove, now=now, expires_at=max(ids.values(), default=now))

    def clear(self) -> None:
        """Forget the cached ids, after a reset."""
        self._recorded.clear()

    async def _record(self, key: Key, now: int, until: int) -> None:
        document = _document_of(key)

        def add(found: Mapping[Key, bytes]) -> Mapping[Key, bytes]:
            ids = {name: end for name, end in _decode(found, document).items() if end > now}
            if key.name not in ids and len(ids) >= self._limit:
                where = f"in channel {key.channel}" if key.channel else "without a channel"
                raise BadRequest("Too many ids", f"id: {len(ids)} of this kind are in use {where}, limit {self._limit}")
            ids[key.name] = until
            return {document: json_codec.encode(ids)}

        await self._documents.update([document], add, now=now, expires_at=until)


def _document_of(key: Key) -> Key:
    return Key(QUOTA_KIND, key.owner, key.kind, key.channel)


def _decode(found: Mapping[Key, bytes], document: Key) -> dict[str, int]:
    return _ids.decode(found[document]) if document in found else {}
