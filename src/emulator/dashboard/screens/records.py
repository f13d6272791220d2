"""Rankings and buffers: a list of all, and one with its answers or entries as they come in."""

from __future__ import annotations

from typing import Any

import msgspec

from emulator.core.callers import is_global
from emulator.core.clock import clamp_instant
from emulator.core.keys import Key
from emulator.core.wire.refusals import invalid_parameter
from emulator.dashboard import texts
from emulator.dashboard.commands import CALLER, field, record_command
from emulator.dashboard.json_text import escape_reordering
from emulator.dashboard.screen import ROWS, Query, Service, screen_of_records
from emulator.features.accumulation import MAX_ENTRY_BYTES, BufferEntry
from emulator.features.ranking import MAX_RANKED_ANSWERS
from emulator.storage.shapes import BallotEntry, LogEntry

_MAX_SKIPPED = 20_000
_MAX_DIGITS = 15
_MAX_ONE_LINE = 60
"""Characters of compact JSON that the page of a buffer shows on one line."""


async def _read_ranking(service: Service, key: Key, query: Query) -> dict[str, Any]:
    counts, _ = await service.engine.ballots.tally(key, now=service.clock.now(), top=MAX_RANKED_ANSWERS)
    return {
        "exists": bool(counts),
        "top": MAX_RANKED_ANSWERS,
        "scores": counts,
        "users": sum(score for _, score in counts),
        **await entries_page(service, key, query),
        **record_commands("rank", key),
        "submitting": record_command("rank", "submit", key.name, field("body.key", "--key"), CALLER, key=key),
    }


def record_commands(noun: str, key: Key) -> dict[str, Any]:
    """Return the commands that read and delete a record, and the role that deletes none of other channels."""
    manager = "admin" if is_global(key.name) else "broadcaster"
    return {
        "manager": manager,
        "reading": record_command(noun, "get", key.name, key=key),
        "deleting": record_command(noun, "rm", key.name, key=key, role=manager),
    }


async def entries_page(service: Service, key: Key, query: Query) -> dict[str, Any]:
    """Return a page of votes or answers, oldest first; `next` is where the next page starts, empty on the last one.

    Raises `BadRequest` for a wrong start.
    """
    since, skipped = _parse_position(query["from"])
    most, following = skipped + ROWS + 1, ""
    found: list[BallotEntry] = []
    async for page in service.engine.ballots.entries(key, now=service.clock.now(), since=since, limit=most):
        found += page
    if len(found) == most:
        at = found[-1].cast_at
        following = f"{at}.{sum(each.cast_at == at for each in found[:-1])}"
    return {"entries": found[skipped : skipped + ROWS], "next": following}


def _parse_position(start: str) -> tuple[int, int]:
    """Return the time from which to read, in Unix ms, and how many entries of that time to skip."""
    if not start:
        return 0, 0
    at, _, skipped = start.partition(".")
    if not (at.isdecimal() and skipped.isdecimal() and len(start) <= 30):
        raise invalid_parameter("from", start, "the value from a link to the next page")
    if int(skipped) > _MAX_SKIPPED:
        problem = f"at most {_MAX_SKIPPED:,} entries of one instant are shown"
        raise invalid_parameter("from", start, f"a place in the first {_MAX_SKIPPED:,} entries of an instant", problem)
    return clamp_instant(int(at)), int(skipped)


async def _read_buffer(service: Service, key: Key, query: Query) -> dict[str, Any]:
    now, start = service.clock.now(), _parse_start(query["start"])
    latest, pages = await service.engine.logs.read(key, now=now, since=start)
    found: list[LogEntry] = []
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
        "lines": [_entry_line(item) for item in found[:ROWS]],
        "has_more": len(found) > ROWS,
        "limit": MAX_ENTRY_BYTES,
        "adding": record_command("accumulate", "add", key.name, field("body:json", shown="JSON"), CALLER, key=key),
        "reading": record_command("accumulate", "get", key.name, *since, key=key),
    }


def _entry_line(item: LogEntry) -> dict[str, Any]:
    """Return an entry as a line of the page: its value is JSON on one line if it is short, otherwise indented."""
    entry = msgspec.json.decode(item.value, type=BufferEntry)
    text = bytes(entry.data).decode()
    return {
        "at": item.at,
        "key": f"{item.at} {entry.opaque_user_id}",
        "opaque_id": entry.opaque_user_id,
        "user_id": entry.user_id,
        "text": escape_reordering(text) if len(text) <= _MAX_ONE_LINE else texts.pretty(text),
        "size": len(bytes(entry.data)),
    }


def _parse_start(text: str) -> int:
    if text and not (text.isdecimal() and len(text) <= _MAX_DIGITS):
        raise invalid_parameter("start", text[:40], "a Unix time in ms")
    return clamp_instant(int(text or 0))


SCREENS = (
    screen_of_records("rankings", "Rankings", "rank", _read_ranking),
    screen_of_records("buffers", "Buffers", "accumulate", _read_buffer),
)
