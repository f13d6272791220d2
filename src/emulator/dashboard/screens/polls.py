"""Polls: a list of all, and one with its votes as they come in."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import msgspec

from emulator.contract.limits import HIGHEST, LOWEST
from emulator.core.callers import is_global, opaque_id_of
from emulator.core.keys import Key
from emulator.core.wire import json_codec
from emulator.dashboard.commands import CALLER, field, record_command
from emulator.dashboard.json_text import pretty
from emulator.dashboard.screen import Query, Service, entries, manager_of, named, screen_of_records
from emulator.features.votes.results import SPECIFIC_VALUES, stats_of
from emulator.features.votes.rules import LIFETIME, Definition, checked_poll_id
from emulator.storage.shapes import BallotEntry

_NEW: Final = {"prompt": "", "options": ["Yes", "No"]}
"""What the editor shows for a poll without a definition."""
_STATED: Final = ("id", "status")
"""The members of a definition that the poll states, and no client defines."""
_OUTSIDE: Final = 20
"""Values outside 0 to 63 that are shown."""


class Voter(NamedTuple):
    """One voter, as a line of the page."""

    opaque_id: str
    user_id: str
    """The shared id; empty if the vote has none."""
    value: str
    times: int
    at: int


async def results_of(service: Service, key: Key, *, show_all: bool = False) -> dict[str, Any]:
    """Return a poll with its results, without its voters."""
    now, ballots = service.clock.now(), service.engine.ballots
    counts, _ = await ballots.tally(key, now=now)
    text = await ballots.definition(key, now=now)
    definition = None if text is None else msgspec.json.decode(text, type=Definition)
    votes = {int(choice): count for choice, count in counts}
    return {
        **named(service, key),
        "exists": bool(counts) or definition is not None,
        "definition": definition,
        "status": "active" if definition is None else definition.status_at(now),
        "is_disabled": definition is not None and definition.disabled,
        "stats": stats_of(counts),
        "bars": _bars(votes, definition.options if definition else [], show_all=show_all),
        "shows_all": show_all,
        **_values_outside_statistics(votes),
        "fresh": f"A{service.journal.mark}",
    }


async def _poll(service: Service, key: Key, query: Query) -> dict[str, Any]:
    checked_poll_id(key.name)
    key = key._replace(channel="" if is_global(key.name) else key.channel)
    poll = await results_of(service, key, show_all="all" in query)
    now, definition = poll["now"], poll["definition"]
    page = await entries(service, key, query.get("from", ""))
    oldest = page.rows[0].cast_at if page.rows and not query.get("from") else None
    return poll | {
        "exists": poll["exists"] or bool(query.get("edit")),
        "edited": _edited(definition) if query.get("edit") else None,
        "voters": [_voter(entry) for entry in page.rows],
        "next": page.next,
        "start": query.get("from", ""),
        "found": await _searched_voter(service, key, query.get("voter", "").strip()),
        "voter": query.get("voter", ""),
        "is_earlier": oldest is not None and oldest < service.contents.started_at <= now,
        "oldest": oldest,
        "lifetime": LIFETIME,
        "lowest": LOWEST,
        "highest": HIGHEST,
        **_commands(key),
    }


def _edited(definition: Definition | None) -> dict[str, str]:
    """Return a poll's definition as JSON for the editor, and as the `expected` definition that `vote_config` compares
    before it writes.
    """
    found = {} if definition is None else msgspec.to_builtins(definition)
    config = {name: value for name, value in (found or _NEW).items() if name not in _STATED and value != []}
    return {"expected": json_codec.encode(found).decode(), "config": pretty(config)}


def _values_outside_statistics(votes: dict[int, int]) -> dict[str, Any]:
    """Return the values outside 0 to 63 with the most votes, and how many other values and votes there are."""
    outside = {value: count for value, count in votes.items() if not _is_specific(value)}
    return {
        "outside": sorted(outside.items(), key=lambda each: -each[1])[:_OUTSIDE],
        "other_values": max(0, len(outside) - _OUTSIDE),
        "outside_count": sum(outside.values()),
    }


def _commands(key: Key) -> dict[str, Any]:
    manager = manager_of(key)
    return {
        "manager": manager,
        "casting": record_command("vote", "cast", key.name, field("body.value:json", "--value"), CALLER, key=key),
        "reading": record_command("vote", "get", key.name, key=key),
        "logging": record_command("vote", "logs", key.name, key=key),
        "deleting": record_command("vote", "rm", key.name, key=key, role=manager),
    }


def _bars(votes: dict[int, int], options: Sequence[str], *, show_all: bool) -> list[tuple[int, str, int]]:
    """Return value, option and votes of the values 0 to 63; without `all`, only of values with votes or an option."""
    shown = range(SPECIFIC_VALUES) if show_all else sorted({*filter(_is_specific, votes), *range(len(options))})
    return [(value, options[value] if value < len(options) else "", votes.get(value, 0)) for value in shown]


def _is_specific(value: int) -> bool:
    return 0 <= value < SPECIFIC_VALUES


def _voter(entry: BallotEntry) -> Voter:
    return Voter(entry.voter, entry.note.decode(), entry.choice, entry.times, entry.cast_at)


async def _searched_voter(service: Service, key: Key, user: str) -> tuple[str, str | None] | None:
    """Return the opaque id of the user that the query searches for, and their vote; `None` if it names no user."""
    if not user:
        return None
    for opaque_id in dict.fromkeys((user, opaque_id_of(user))):
        choice = (await service.engine.ballots.tally(key, now=service.clock.now(), voter=opaque_id, top=1)).choice
        if choice is not None:
            return opaque_id, choice
    return user, None


SCREENS = (screen_of_records("polls", "Polls", "poll", _poll, lambda query: not query.get("edit")),)
