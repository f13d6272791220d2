"""The overview: current activity, how to connect, and production's verdicts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable
from typing import Any

from emulator.contract.parity import UNKNOWN, rule_of
from emulator.control.contents import ContentFilter
from emulator.control.demo import CHANNEL, CLIENT_ID, DEMO_NAMESPACE, RANKING_ID
from emulator.core.changes import MAX_KEPT
from emulator.core.clock import SECOND
from emulator.core.journal import Entry
from emulator.core.keys import Key
from emulator.core.parity import SANDBOX_TOKEN
from emulator.dashboard.screen import ROWS, Query, Screen, Service
from emulator.dashboard.screens.broadcasts import broadcast_row, latest_broadcasts
from emulator.dashboard.screens.polls import poll_results
from emulator.dashboard.screens.requests import with_deliveries
from emulator.dashboard.timeline import BAR_MS, VOTE_ENDPOINT, latest_bars, timeline_lanes

_BARS_IN_A_MINUTE = 12
"""Bars of the last minute."""
_MAX_ENTRIES_READ = 1_000
"""Entries of the journal from which the latest rows are made, at most."""
_MAX_ROWS = 10
_MAX_RECENT_VOTES = 200
"""Votes among which the busiest poll has the most."""
_CONTROL_PATHS = ("/_emulator", "/_ns")
_SCRIPT_ENDPOINTS = {("GET", "/_emulator/sdk.js"), ("GET", "/_emulator/platform-helper.js")}
_TEST_ENDPOINTS = {("POST", "/_ns"), ("POST", "/_ns/{name}"), ("PUT", "/_emulator/seed"), ("GET", "/_emulator/wait")}
"""Requests that a test makes first: a namespace, a seed, a wait."""


async def read(service: Service, query: Query) -> dict[str, Any]:
    """Return the values of the overview."""
    seen = service.parity.tally.counted_verdicts
    unknown = [each for each in seen if each.verdict == UNKNOWN]
    used = service.metrics.endpoints.keys()
    return {
        "readiness": await service.control.readiness(),
        "verdicts": [each for each in seen if each.verdict != UNKNOWN],
        "unknown": sum(each.count for each in unknown if each.rule != rule_of(SANDBOX_TOKEN)),
        "has_sandbox_tokens": any(each.rule == rule_of(SANDBOX_TOKEN) for each in unknown),
        "has_page": service.sockets > 0 or not used.isdisjoint(_SCRIPT_ENDPOINTS),
        "has_test": not used.isdisjoint(_TEST_ENDPOINTS),
        "poll": await _busiest_poll(service),
        "stage": await stage_values(service),
        "broadcast": next(latest_broadcasts(service), None),
        **await _latest_activity(service),
    }


async def _latest_activity(service: Service) -> dict[str, Any]:
    """Return the values of the cards and of the picture, and the latest rows."""
    bars = await latest_bars(service, {})
    minute = [bar for bar in bars[-_BARS_IN_A_MINUTE:] if bar.last]
    durations = sorted(each for bar in minute for each in bar.durations) or [0.0]
    recent = [each for each in service.journal.newest(_MAX_ENTRIES_READ) if not each.is_probe]
    return {
        "lanes": timeline_lanes(bars, service.faults.all(), {}),
        "votes": [bar.votes * SECOND / BAR_MS for bar in bars],
        "slowest": [1000 * max(bar.durations, default=0) for bar in bars],
        "median": 1000 * durations[len(durations) // 2],
        "p99": 1000 * durations[len(durations) * 99 // 100],
        "reasons": sum((bar.reasons for bar in minute), Counter[str]()).most_common(),
        "requests": sum(bar.requests for bar in minute),
        "since": minute[0].first - 1 if minute else 0,
        "before": minute[-1].last + 1 if minute else 0,
        "rows": _activity_rows(recent),
        "is_used": any(not each.path.startswith(_CONTROL_PATHS) for each in recent),
    }


def _activity_rows(newest: Iterable[Entry]) -> list[dict[str, Any]]:
    """Return the latest rows: an entry with its deliveries, or all that say the same in five seconds."""
    rows: dict[Hashable, dict[str, Any]] = {}
    for entry, *deliveries in with_deliveries(newest):
        place = entry.caller and (entry.caller.client_id, entry.caller.channel_id)
        key: Hashable = (entry.at // BAR_MS, entry.name, entry.path, entry.reason, place)
        if key not in rows and len(rows) == _MAX_ROWS:
            break
        row = rows.setdefault(
            key, {"entry": entry, "deliveries": deliveries, "count": 0, "is_vote": entry.name == VOTE_ENDPOINT}
        )
        row["count"] += 1
        row["first"] = entry.number
    return list(rows.values())


async def _busiest_poll(service: Service) -> dict[str, Any] | None:
    """Return the poll with the most recent votes, otherwise the one that changed last; `None` without any."""
    counts = Counter(each.key for each in service.changes.latest("poll", _MAX_RECENT_VOTES))
    keys = [key for key, _ in counts.most_common()]
    if not keys:
        rows = (await service.contents.page("polls", ContentFilter(), limit=ROWS)).rows
        rows = sorted(rows, key=lambda each: -each.latest)
        keys = [Key("poll", each.client_id, each.id, each.channel_id) for each in rows[:1]]
    for key in keys:
        poll = await poll_results(service, key)
        if poll["exists"]:
            return poll
    return None


SCREENS = (Screen("overview", "Overview", read, refresh_seconds=1.0),)


_PHONE_COUNT = 4


async def stage_values(service: Service) -> dict[str, Any] | None:
    """Return what the stage shows; `None` outside the demo, and before its first vote."""
    votes = [each for each in service.changes.latest("poll", MAX_KEPT) if each.did == "vote"]
    if service.name != DEMO_NAMESPACE or not votes:
        return None
    latest, ranking = votes[-1], Key("rank", CLIENT_ID, RANKING_ID, CHANNEL)
    words, _ = await service.engine.ballots.tally(ranking, now=service.clock.now(), top=4)
    return {
        "poll": await poll_results(service, latest.key),
        "words": words,
        "said": next((broadcast_row(*each)["payload"] for each in latest_broadcasts(service)), ""),
        "voters": sorted({each.mark % _PHONE_COUNT: each for each in votes if each.key == latest.key}.items()),
        "latest": latest,
    }
