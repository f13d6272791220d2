"""Polls: a list of all, and one with its results, its latest votes, and what edits, closes, opens and restarts it."""

from __future__ import annotations

from collections import Counter
from itertools import takewhile
from random import Random
from typing import Any
from urllib.parse import quote

import msgspec

from emulator.control.calls import CallBody
from emulator.core.callers import is_global, opaque_id_of
from emulator.core.changes import MAX_KEPT, Change
from emulator.core.clock import HOUR, MINUTE, SECOND
from emulator.core.keys import Key
from emulator.dashboard.commands import CALLER, field, record_command
from emulator.dashboard.json_text import compact_json
from emulator.dashboard.refusals import crowd_stopped
from emulator.dashboard.screen import Query, Service, is_before_start, key_values, screen_of_records
from emulator.dashboard.screens.records import entries_page, record_commands
from emulator.dashboard.timeline import VOTE_ENDPOINT, poll_in_query
from emulator.features.votes.results import SPECIFIC_VALUES, stats_of
from emulator.features.votes.rules import Definition, checked_poll_id

CROWD_SIZE = 200
"""The viewers of a crowd."""
_EDITOR_FIELDS = ("prompt", "options", "startsAt", "endsAt")
"""The members of a definition that the editor has fields for."""
_UNDEFINED_FIELDS = ("id", "status")
"""The members of a definition that the poll states, and no client defines."""
_STATE_WORDS = {"pending": "pending", "active": "open", "expired": "closed"}
_COMMAND_VERBS = ("logs", "close", "reopen", "restart")
"""The commands beside the forms and the log."""
_MAX_ENTRIES_READ = 5_000
"""Requests among which refused votes are counted."""
_RATE_SECONDS = 5
_MAX_LATEST_VOTES = 10
_COLUMN_COUNT = 60
_COLUMN_TIMES = (SECOND, 5 * SECOND, 15 * SECOND, MINUTE, 5 * MINUTE, HOUR, 3 * HOUR)
"""The time of a column: the shortest with which all recent votes are shown."""


async def poll_results(service: Service, key: Key) -> dict[str, Any]:
    """Return a poll with its results, without its voters. `state` is `pending`, `open`, `closed` or `disabled`."""
    now, ballots = service.clock.now(), service.engine.ballots
    counts, _ = await ballots.tally(key, now=now)
    text = await ballots.definition(key, now=now)
    definition = None if text is None else msgspec.json.decode(text, type=Definition)
    state = "open" if definition is None else _STATE_WORDS[definition.status_at(now)]
    options = definition.options if definition else []
    votes = {int(choice): count for choice, count in counts}
    shown = range(len(options)) if options else sorted(value for value in votes if 0 <= value < SPECIFIC_VALUES)
    return {
        **key_values(key),
        "exists": bool(counts) or definition is not None,
        "definition": definition,
        "title": (definition.prompt if definition else "") or f"Poll {key.name}",
        "state": "disabled" if definition and definition.disabled else state,
        "stats": stats_of(counts),
        "votes": votes,
        "bars": [(value, options[value] if options else "", votes.get(value, 0)) for value in shown],
        "others": [(value, count) for value, count in votes.items() if value not in shown],
        "fresh": f"A{service.journal.mark}",
    }


async def _read_poll(service: Service, key: Key, query: Query) -> dict[str, Any]:
    key, now = _poll_key(key), service.clock.now()
    poll = await poll_results(service, key)
    found = await entries_page(service, key, query)
    recent = await _recent_votes(service, key, poll["stats"].count)
    definition = poll["definition"]
    is_first_page = not query["from"]
    oldest = 0
    if found["entries"] and is_first_page:
        oldest = found["entries"][0].cast_at
    return poll | {
        **found,
        "exists": poll["exists"] or bool(query["edit"]),
        "edited": _editor_texts(definition),
        "switch": compact_json(_opened_or_closed(definition, poll["state"], now)),
        "fresh_start": compact_json(_opened_or_closed(definition, "closed", now)),
        "crowd": CROWD_SIZE,
        "latest": recent[:_MAX_LATEST_VOTES],
        "times": _votes_over_time(recent, now),
        **_vote_rates(recent, now),
        "refused": _refused_votes(service, key),
        "found": await _searched_voter(service, key, query["voter"].strip()),
        "is_earlier": is_before_start(service, oldest),
        "oldest": oldest,
        **record_commands("vote", key),
        "casting": record_command("vote", "cast", key.name, field("body.value:json", "--value"), CALLER, key=key),
        "verbs": {verb: record_command("vote", verb, key.name, key=key) for verb in _COMMAND_VERBS},
    }


async def _recent_votes(service: Service, key: Key, count: int) -> list[Change]:
    """Return the latest votes, newest first: those that the service remembers since its start or the poll's deletion.

    If it remembers none, they are the latest vote of each voter, unless the poll has too many to read.
    """
    of_poll = [each for each in reversed(service.changes.latest("poll", MAX_KEPT)) if each.key == key]
    found = [each for each in takewhile(lambda each: each.did != "cleared", of_poll) if each.did == "vote"]
    if not found and count <= MAX_KEPT:
        async for page in service.engine.ballots.entries(key, now=service.clock.now()):
            found += [Change(key, "vote", each.voter, int(each.choice), each.cast_at, each.times) for each in page]
        found.reverse()
    return found


def _vote_rates(recent: list[Change], now: int) -> dict[str, Any]:
    """Return votes per second: now, and the most in any second of the recent ones."""
    seconds: Counter[int] = Counter()
    for each in recent:
        seconds[each.at // SECOND] += each.times
    young = sum(each.times for each in recent if 0 <= now - each.at < _RATE_SECONDS * SECOND)
    return {"rate": young / _RATE_SECONDS, "peak": max(seconds.values(), default=0)}


def _votes_over_time(recent: list[Change], now: int) -> dict[str, Any]:
    """Count the recent votes by value in columns of equal time, of which the last has the present."""
    age = now - min((each.at for each in recent), default=now)
    step = next((each for each in _COLUMN_TIMES if age < each * (_COLUMN_COUNT - 1)), _COLUMN_TIMES[-1])
    columns: list[Counter[Any]] = [Counter() for _ in range(_COLUMN_COUNT)]
    for each in recent:
        column = _COLUMN_COUNT - 1 - now // step + each.at // step
        if 0 <= column < _COLUMN_COUNT:
            columns[column][each.value] += each.times
    return {"columns": columns, "step": step, "totals": [column.total() for column in columns]}


def _refused_votes(service: Service, key: Key) -> list[tuple[str, int]]:
    """Return the reasons of the refused votes among the latest requests, with their numbers, most frequent first."""
    reasons: Counter[str] = Counter()
    for each in service.journal.newest(_MAX_ENTRIES_READ):
        if each.reason and each.name == VOTE_ENDPOINT and poll_in_query(each) == key.name:
            caller = each.caller  # none if a fault acted first
            if not caller or (caller.client_id, caller.channel_id if key.channel else "") == (key.owner, key.channel):
                reasons[each.reason] += 1
    return reasons.most_common()


def _poll_key(key: Key) -> Key:
    """Return the key of a poll; a global one belongs to no channel. Raises `BadRequest` for an invalid id."""
    return key._replace(channel="" if is_global(checked_poll_id(key.name)) else key.channel)


def _poll_config(definition: Definition | None) -> dict[str, Any]:
    """Return a poll's definition as a client sends it."""
    found = {} if definition is None else msgspec.to_builtins(definition)
    return {name: value for name, value in found.items() if name not in _UNDEFINED_FIELDS and value != []}


def _editor_texts(definition: Definition | None) -> dict[str, str]:
    """Return what the editor shows as JSON, and what `vote_config` has to find before it writes."""
    found = {} if definition is None else msgspec.to_builtins(definition)
    rest = {name: value for name, value in _poll_config(definition).items() if name not in _EDITOR_FIELDS}
    return {"expected": compact_json(found), "rest": compact_json(rest)}


def _opened_or_closed(definition: Definition | None, state: str, now: int) -> dict[str, Any]:
    """Return the definition that closes the poll if it is open, and otherwise opens it until its end, if that is to
    come.
    """
    config = _poll_config(definition)
    if state == "open":
        return config | {"endsAt": -1}
    opened = {"disabled": False, "startsAt": 0}
    if config.get("endsAt", 0) * SECOND <= now:
        opened["endsAt"] = 0
    return config | opened


async def _send_crowd(service: Service, query: Query, fields: Query) -> dict[str, Any]:
    """Vote as many new viewers, most of them for one of the first options. Raises `Conflict` if a vote is refused."""
    key = _poll_key(Key("poll", query["client_id"], query["id"], query["channel_id"]))
    poll = await poll_results(service, key)
    last = len(poll["bars"]) - 1 if poll["definition"] and poll["definition"].options else 5
    path = f"/v1/e/vote?id={quote(key.name)}"
    choice = Random(poll["fresh"])
    for number in range(CROWD_SIZE):
        body = {"value": int(choice.triangular(0, last + 1, 0))}
        viewer = f"{poll['fresh']}-{number}"
        vote = CallBody(path, key.owner, "POST", body, channel_id=key.channel or "", opaque_user_id=viewer)
        called = await service.calls.call(vote, "")
        if called.status != 200:
            raise crowd_stopped(poll=key.name, votes=number, status=called.status)
    return await _read_polls(service, query)


async def _searched_voter(service: Service, key: Key, user: str) -> tuple[str, str | None] | None:
    """Return the opaque id of the user that the query searches for, and their vote; `None` if it names no user."""
    if not user:
        return None
    for opaque_id in dict.fromkeys((user, opaque_id_of(user))):
        tally = await service.engine.ballots.tally(key, now=service.clock.now(), voter=opaque_id, top=1)
        if tally.choice is not None:
            return opaque_id, tally.choice
    return user, None


async def _read_polls(service: Service, query: Query) -> dict[str, Any]:
    """Return one poll, or the list of polls with the `results` of each."""
    values = await _SCREEN.read(service, query)
    keys = [Key("poll", row.client_id, row.id, row.channel_id) for row in values.get("rows", ())]
    return {**values, "results": [await poll_results(service, key) for key in keys]}


_SCREEN = screen_of_records("polls", "Polls", "poll", _read_poll)
SCREENS = (_SCREEN._replace(read=_read_polls, is_live=lambda query: not query["edit"], submit=_send_crowd),)
