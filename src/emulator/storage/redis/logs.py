"""Logs on Redis. Entries never change, so a reading stops at the newest number when it began."""

from __future__ import annotations

from emulator.core.keys import Key
from emulator.storage.merging import merged_items
from emulator.storage.redis.client import Client, blob
from emulator.storage.redis.keys import CHANNEL_LAST
from emulator.storage.shapes import ListedLog, Span


class RedisLogs:
    def __init__(self, client: Client) -> None:
        self._script = client.script("logs")

    async def append(self, key: Key, value: bytes, *, now: int, expires_at: int) -> None:
        await self._script.run("append", CHANNEL_LAST.text(key), now, expires_at, blob(value))

    async def read(self, key: Key, *, now: int, since: int = 0) -> Span:
        is_group = key.channel is None
        name = CHANNEL_LAST.group(key) if is_group else CHANNEL_LAST.text(key)
        bound, latest, *logs = await self._script.run("begin", name, is_group, now)
        fetches = [self._script.pages(b"+", log.decode(), bound.decode(), since, now) for log in logs]
        return Span(latest, merged_items(fetches))

    async def listing(
        self, group: Key, *, now: int, limit: int, after: Key | None = None, matching: str = ""
    ) -> list[ListedLog]:
        found = await self._script.listing(group, now=now, limit=limit, after=after, matching=matching)
        return [ListedLog(key, count, latest) for key, (count, latest) in found]
