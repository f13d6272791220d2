"""Buffers: a list of all, and one with its newest entries."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from emulator.core.clock import clamp_instant
from emulator.core.keys import Key
from emulator.core.wire.refusals import invalid_parameter
from emulator.dashboard.commands import CALLER, field, record_command
from emulator.dashboard.json_text import escaped
from emulator.dashboard.screen import ROWS, Query, Service, screen_of_records
from emulator.dashboard.texts import pretty
from emulator.features.accumulation import LIMIT, BufferEntry
from emulator.storage.shapes import Item

_MAX_DIGITS: Final = 15
_SHORT: Final = 60
"""Characters of compact JSON that the page shows on one line."""


async def _buffer(service: Service, key: Key, query: Query) -> dict[str, Any]:
    now, start = service.clock.now(), _start(query["start"])
    latest, pages = await service.engine.logs.read(key, now=now, since=start)
    found: list[Item] = []
    async for page in pages:
        found += page
        if len(found) > ROWS:
            break
    since = ("--start", str(start)) if start else ()
    return {
        "exists": bool(latest),
        "latest": latest,
        "start": start,
        "minute": (now - 60_000) // 10_000 * 10_000,
        "lines": [_line_of(item) for item in found[:ROWS]],
        "has_more": len(found) > ROWS,
        "limit": LIMIT,
        "adding": record_command("accumulate", "add", key.name, field("body:json", shown="JSON"), CALLER, key=key),
        "reading": record_command("accumulate", "get", key.name, *since, key=key),
    }


def _line_of(item: Item) -> dict[str, Any]:
    """Return an entry as a line of the page: its value is JSON on one line if it is short, otherwise indented."""
    entry = msgspec.json.decode(item.value, type=BufferEntry)
    text = bytes(entry.data).decode()
    return {
        "at": item.at,
        "opaque_id": entry.opaque_user_id,
        "user_id": entry.user_id,
        "text": escaped(text) if len(text) <= _SHORT else pretty(text),
        "size": len(bytes(entry.data)),
    }


def _start(text: str) -> int:
    if text and not (text.isdecimal() and len(text) <= _MAX_DIGITS):
        raise invalid_parameter("start", text[:40], "a Unix time in ms")
    return clamp_instant(int(text or 0))


SCREENS = (screen_of_records("buffers", "Buffers", "accumulate", _buffer),)
