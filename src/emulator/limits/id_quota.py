"""How many ids an extension uses in one channel, so that nobody fills the data with ever new ones.

A viewer begins a poll, a ranking or a buffer by naming it. What was begun is noted in one document for each kind,
extension and channel, which all nodes share; a node that has noted an id lately does not ask again, so the crowd of one
poll costs a look into a dictionary. That makes the limit one of the order of its number, not an exact one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

from emulator.clock import HOUR, Clock
from emulator.engines.base import Documents, Key
from emulator.errors import BadRequest
from emulator.wire import json_codec

SHELF: Final = "ids"
"""Where the notes are kept; that they end is of no interest to anyone."""
_NOTED_AGAIN: Final = HOUR
_MOST_HELD: Final = 100_000

_ids = msgspec.json.Decoder(dict[str, int])
"""Each id, and the Unix ms until which it counts."""


class IdQuota:
    """Room for so many ids of a kind in a channel."""

    def __init__(self, documents: Documents, clock: Clock, most: int) -> None:
        self._documents = documents
        self._clock = clock
        self._most = most
        self._noted: dict[Key, int] = {}
        """When this process last noted an id."""

    async def take(self, key: Key, lifetime: int) -> None:
        """Note that something under `key` lives for `lifetime` ms from now; raises `BadRequest` for one id too many."""
        now = self._clock.now()
        noted = self._noted.get(key)
        if noted is not None and noted <= now < noted + _NOTED_AGAIN:
            return
        # Longer than it lives, as for a while it may live on without being noted anew.
        await self._note(key, now, now + lifetime + _NOTED_AGAIN)
        if len(self._noted) >= _MOST_HELD:
            self._noted.clear()
        self._noted[key] = now

    async def free(self, key: Key) -> None:
        """What was under `key` is gone. An id that is gone from all channels at once still counts until its end."""
        self._noted.pop(key, None)
        if key.channel is None:
            return
        record, now = _record(key), self._clock.now()
        ids = _read(await self._documents.read([record], now=now), record)
        if ids.pop(key.name, None) is None:
            return

        def remove(found: Mapping[Key, bytes]) -> Mapping[Key, bytes]:
            rest = _read(found, record)
            rest.pop(key.name, None)
            return {record: json_codec.encode(rest)}

        await self._documents.update([record], remove, now=now, expires_at=max(ids.values(), default=now))

    def forget(self) -> None:
        """All data is gone."""
        self._noted.clear()

    async def _note(self, key: Key, now: int, until: int) -> None:
        record = _record(key)

        def add(found: Mapping[Key, bytes]) -> Mapping[Key, bytes]:
            ids = {name: end for name, end in _read(found, record).items() if end > now}
            if key.name not in ids and len(ids) >= self._most:
                where = f"in the channel {key.channel}" if key.channel else "outside of channels"
                raise BadRequest(
                    "Too many ids", f"id: {len(ids)} of this kind are in use {where}, and no more are taken"
                )
            ids[key.name] = until
            return {record: json_codec.encode(ids)}

        await self._documents.update([record], add, now=now, expires_at=until)


def _record(key: Key) -> Key:
    return Key(SHELF, key.owner, key.kind, key.channel)


def _read(found: Mapping[Key, bytes], record: Key) -> dict[str, int]:
    return _ids.decode(found[record]) if record in found else {}
