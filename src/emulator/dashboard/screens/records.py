"""Polls, rankings and buffers: a list of all, and one with its votes, answers or entries as they come in."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from emulator.contract.limits import HIGHEST, LOWEST
from emulator.core.callers import is_global, opaque_id_of
from emulator.core.clock import clamp_instant
from emulator.core.keys import Key
from emulator.core.wire import json_codec
from emulator.core.wire.refusals import invalid_parameter
from emulator.dashboard import texts
from emulator.dashboard.commands import CALLER, field, record_command
from emulator.dashboard.json_text import escaped, pretty
from emulator.dashboard.screen import ROWS, Query, Service, is_earlier, named, screen_of_records
from emulator.features.accumulation import LIMIT, BufferEntry
from emulator.features.ranking import TOP
from emulator.features.votes.results import SPECIFIC_VALUES, stats_of
from emulator.features.votes.rules import Definition, checked_poll_id
from emulator.storage.shapes import BallotEntry, Item

_NEW = {"prompt": "", "options": ["Yes", "No"]}
"""What the editor shows for a poll without a definition."""
_STATED = ("id", "status")
"""The members of a definition that the poll states, and no client defines."""
_OUTSIDE = 20
"""Values outside 0 to 63 that are shown."""
_MAX_SKIPPED = 20_000
_MAX_DIGITS = 15
_SHORT = 60
"""Characters of compact JSON that the page of a buffer shows on one line."""


async def results_of(service: Service, key: Key, *, show_all: bool = False) -> dict[str, Any]:
    """Return a poll with its results, without its voters."""
    now, ballots = service.clock.now(), service.engine.ballots
    counts, _ = await ballots.tally(key, now=now)
    text = await ballots.definition(key, now=now)
    definition = None if text is None else msgspec.json.decode(text, type=Definition)
    votes = {int(choice): count for choice, count in counts}
    outside = {value: count for value, count in votes.items() if not 0 <= value < SPECIFIC_VALUES}
    return {
        **named(key),
        "exists": bool(counts) or definition is not None,
        "definition": definition,
        "status": "active" if definition is None else definition.status_at(now),
        "is_disabled": definition is not None and definition.disabled,
        "stats": stats_of(counts),
        "bars": _bars(votes, definition.options if definition else [], show_all=show_all),
        "shows_all": show_all,
        "outside": sorted(outside.items(), key=lambda each: -each[1])[:_OUTSIDE],
        "other_values": max(0, len(outside) - _OUTSIDE),
        "outside_count": sum(outside.values()),
        "fresh": f"A{service.journal.mark}",
    }


def _bars(votes: dict[int, int], options: Sequence[str], *, show_all: bool) -> list[tuple[int, str, int]]:
    """Return value, option and votes of the values 0 to 63; without `all`, only of values with votes or an option."""
    bars = []
    for value in range(SPECIFIC_VALUES):
        option = options[value] if value < len(options) else ""
        if show_all or value in votes or value < len(options):
            bars.append((value, option, votes.get(value, 0)))
    return bars


async def _poll(service: Service, key: Key, query: Query) -> dict[str, Any]:
    checked_poll_id(key.name)
    key = key._replace(channel="" if is_global(key.name) else key.channel)
    poll = await results_of(service, key, show_all="all" in query)
    found = await _entries(service, key, query)
    oldest = found["entries"][0].cast_at if found["entries"] and not query["from"] else 0
    return poll | {
        **found,
        "exists": poll["exists"] or bool(query["edit"]),
        "edited": _edited(poll["definition"]) if query["edit"] else None,
        "found": await _searched_voter(service, key, query["voter"].strip()),
        "is_earlier": is_earlier(service, oldest),
        "oldest": oldest,
        "lowest": LOWEST,
        "highest": HIGHEST,
        **_commands("vote", key),
        "casting": record_command("vote", "cast", key.name, field("body.value:json", "--value"), CALLER, key=key),
        "logging": record_command("vote", "logs", key.name, key=key),
    }


def _edited(definition: Definition | None) -> dict[str, str]:
    """Return a poll's definition as JSON for the editor, and as the `expected` definition that `vote_config` compares
    before it writes.
    """
    found = {} if definition is None else msgspec.to_builtins(definition)
    config = {}
    for name, value in (found or _NEW).items():
        if name not in _STATED and value != []:
            config[name] = value
    return {"expected": json_codec.encode(found).decode(), "config": pretty(config)}


async def _searched_voter(service: Service, key: Key, user: str) -> tuple[str, str | None] | None:
    """Return the opaque id of the user that the query searches for, and their vote; `None` if it names no user."""
    if not user:
        return None
    for opaque_id in dict.fromkeys((user, opaque_id_of(user))):
        tally = await service.engine.ballots.tally(key, now=service.clock.now(), voter=opaque_id, top=1)
        if tally.choice is not None:
            return opaque_id, tally.choice
    return user, None


async def _ranking(service: Service, key: Key, query: Query) -> dict[str, Any]:
    counts, _ = await service.engine.ballots.tally(key, now=service.clock.now(), top=TOP)
    return {
        "exists": bool(counts),
        "top": TOP,
        "scores": counts,
        "users": sum(score for _, score in counts),
        **await _entries(service, key, query),
        **_commands("rank", key),
        "submitting": record_command("rank", "submit", key.name, field("body.key", "--key"), CALLER, key=key),
    }


def _commands(noun: str, key: Key) -> dict[str, Any]:
    """Return the commands that read and delete a record, and the role that deletes none of other channels."""
    manager = "admin" if is_global(key.name) else "broadcaster"
    return {
        "manager": manager,
        "reading": record_command(noun, "get", key.name, key=key),
        "deleting": record_command(noun, "rm", key.name, key=key, role=manager),
    }


async def _entries(service: Service, key: Key, query: Query) -> dict[str, Any]:
    """Return a page of votes or answers, oldest first; `next` is where the next page starts, empty on the last one.

    Raises `BadRequest` for a wrong start.
    """
    since, skipped = _position(query["from"])
    most, following = skipped + ROWS + 1, ""
    found: list[BallotEntry] = []
    async for page in service.engine.ballots.entries(key, now=service.clock.now(), since=since, limit=most):
        found += page
    if len(found) == most:
        at = found[-1].cast_at
        following = f"{at}.{sum(each.cast_at == at for each in found[:-1])}"
    return {"entries": found[skipped : skipped + ROWS], "next": following}


def _position(start: str) -> tuple[int, int]:
    """Return the time from which to read, in Unix ms, and how many entries of that time to skip."""
    if not start:
        return 0, 0
    at, _, skipped = start.partition(".")
    if not (at.isdecimal() and skipped.isdecimal() and len(start) <= 30):
        raise invalid_parameter(
            "from", start, "the value from a link to the next page", "follow a link to the next page"
        )
    if int(skipped) > _MAX_SKIPPED:
        problem = f"at most {_MAX_SKIPPED:,} entries of one instant are shown"
        raise invalid_parameter("from", start, f"after at most {_MAX_SKIPPED:,} entries", problem)
    return clamp_instant(int(at)), int(skipped)


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
        "text": escaped(text) if len(text) <= _SHORT else texts.pretty(text),
        "size": len(bytes(entry.data)),
    }


def _start(text: str) -> int:
    if text and not (text.isdecimal() and len(text) <= _MAX_DIGITS):
        raise invalid_parameter("start", text[:40], "a Unix time in ms")
    return clamp_instant(int(text or 0))


SCREENS = (
    screen_of_records("polls", "Polls", "poll", _poll)._replace(is_live=lambda query: not query["edit"]),
    screen_of_records("rankings", "Rankings", "rank", _ranking),
    screen_of_records("buffers", "Buffers", "accumulate", _buffer),
)
