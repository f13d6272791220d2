"""The overview: current activity, how to connect, and production's verdicts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable
from typing import Any

from emulator.contract.parity import UNKNOWN, rule_of
from emulator.control.contents import Filter
from emulator.control.demo import CHANNEL, CLIENT_ID, NAMESPACE, WORDS
from emulator.core.changes import KEPT
from emulator.core.clock import SECOND
from emulator.core.journal import Entry
from emulator.core.keys import Key
from emulator.core.parity import FOR_SANDBOX
from emulator.dashboard.screen import ROWS, Query, Screen, Service
from emulator.dashboard.screens.broadcasts import broadcasts_of, delivery_of
from emulator.dashboard.screens.polls import results_of
from emulator.dashboard.screens.requests import with_deliveries
from emulator.dashboard.timeline import BAR, VOTING, bars_of, lanes_of

_MINUTE = 12
"""Bars of the last minute."""
_LOOKED_AT = 1_000
"""Entries of the journal from which the latest rows are made, at most."""
_ROWS = 10
_RECENT_VOTES = 200
"""Votes among which the busiest poll has the most."""
_CONTROL = ("/_emulator", "/_ns")
_SCRIPTS = {("GET", "/_emulator/sdk.js"), ("GET", "/_emulator/platform-helper.js")}
_OF_TESTS = {("POST", "/_ns"), ("POST", "/_ns/{name}"), ("PUT", "/_emulator/seed"), ("GET", "/_emulator/wait")}
"""Requests that a test makes first: a namespace, a seed, a wait."""


async def read(service: Service, query: Query) -> dict[str, Any]:
    """Return the values of the overview."""
    seen = service.parity.tally.seen
    unknown = [each for each in seen if each.verdict == UNKNOWN]
    used = service.metrics.endpoints.keys()
    return {
        "readiness": await service.control.readiness(),
        "verdicts": [each for each in seen if each.verdict != UNKNOWN],
        "unknown": sum(each.count for each in unknown if each.rule != rule_of(FOR_SANDBOX)),
        "has_sandbox_tokens": any(each.rule == rule_of(FOR_SANDBOX) for each in unknown),
        "has_page": service.sockets > 0 or not used.isdisjoint(_SCRIPTS),
        "has_test": not used.isdisjoint(_OF_TESTS),
        "poll": await _busiest(service),
        "stage": await stage_of(service),
        "broadcast": next(broadcasts_of(service), None),
        **await _latest_activity(service),
    }


async def _latest_activity(service: Service) -> dict[str, Any]:
    """Return the values of the cards and of the picture, and the latest rows."""
    bars = await bars_of(service, {})
    minute = [bar for bar in bars[-_MINUTE:] if bar.last]
    durations = sorted(each for bar in minute for each in bar.durations) or [0.0]
    recent = [each for each in service.journal.newest(_LOOKED_AT) if not each.is_probe]
    return {
        "lanes": lanes_of(bars, service.faults.armed, service.clock.now(), {}),
        "votes": [bar.votes * SECOND / BAR for bar in bars],
        "slowest": [1000 * max(bar.durations, default=0) for bar in bars],
        "median": 1000 * durations[len(durations) // 2],
        "p99": 1000 * durations[len(durations) * 99 // 100],
        "reasons": sum((bar.reasons for bar in minute), Counter[str]()).most_common(),
        "requests": sum(bar.requests for bar in minute),
        "since": minute[0].first - 1 if minute else 0,
        "before": minute[-1].last + 1 if minute else 0,
        "rows": _rows_of(recent),
        "is_used": any(not each.path.startswith(_CONTROL) for each in recent),
    }


def _rows_of(newest: Iterable[Entry]) -> list[dict[str, Any]]:
    """Return the latest rows: an entry with its deliveries, or all that say the same in five seconds."""
    rows: dict[Hashable, dict[str, Any]] = {}
    for entry, *deliveries in with_deliveries(newest):
        place = entry.caller and (entry.caller.client_id, entry.caller.channel_id)
        key: Hashable = (entry.at // BAR, entry.name, entry.path, entry.reason, place)
        if key not in rows and len(rows) == _ROWS:
            break
        row = rows.setdefault(
            key, {"entry": entry, "deliveries": deliveries, "count": 0, "is_vote": entry.name == VOTING}
        )
        row["count"] += 1
        row["first"] = entry.number
    return list(rows.values())


async def _busiest(service: Service) -> dict[str, Any] | None:
    """Return the poll with the most recent votes, otherwise the one that changed last; `None` without any."""
    counts = Counter(each.key for each in service.changes.latest("poll", _RECENT_VOTES))
    keys = [key for key, _ in counts.most_common()]
    if not keys:
        rows = (await service.contents.page("polls", Filter(), limit=ROWS)).rows
        rows = sorted(rows, key=lambda each: -each.latest)
        keys = [Key("poll", each.client_id, each.id, each.channel_id) for each in rows[:1]]
    for key in keys:
        poll = await results_of(service, key)
        if poll["exists"]:
            return poll
    return None


SCREENS = (Screen("overview", "Overview", read, every=1.0),)


_PHONES = 4


async def stage_of(service: Service) -> dict[str, Any] | None:
    """Return what the stage shows; `None` outside the demo, and before its first vote."""
    votes = [each for each in service.changes.latest("poll", KEPT) if each.did == "vote"]
    if service.name != NAMESPACE or not votes:
        return None
    latest, ranking = votes[-1], Key("rank", CLIENT_ID, WORDS, CHANNEL)
    words, _ = await service.engine.ballots.tally(ranking, now=service.clock.now(), top=4)
    return {
        "poll": await results_of(service, latest.key),
        "words": words,
        "said": next((delivery_of(*each)["payload"] for each in broadcasts_of(service)), ""),
        "voters": sorted({each.mark % _PHONES: each for each in votes if each.key == latest.key}.items()),
        "latest": latest,
    }
