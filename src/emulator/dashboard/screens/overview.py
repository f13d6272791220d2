"""The overview: current activity, how to connect, and production's verdicts."""

from __future__ import annotations

from collections import Counter
from typing import Any

from emulator.contract.parity import UNKNOWN, rule_of
from emulator.control.contents import Filter
from emulator.core.clock import SECOND
from emulator.core.journal import REQUEST, Entry
from emulator.core.keys import Key
from emulator.core.parity import FOR_SANDBOX
from emulator.dashboard.rig.arrangement import DEFAULT_CHANNEL
from emulator.dashboard.screen import Query, Screen, Service, suggested
from emulator.dashboard.screens.polls import results_of

_DEMO_WORDS = Key("rank", "demo-extension", "words", "1001")
"""The ranking to which the crowd of the demo adds."""
_MOST = 50
"""Extensions that the screen names."""
_SECONDS = 60
"""Seconds of the journal that the curve and the counts cover."""
_LOOKED_AT = 12_000
"""Entries of the journal that are read for them, at most."""
_TICKER = 12
_RECENT_VOTES = 200
"""Votes among which the busiest poll has the most."""
_SCRIPTS = ("GET /_emulator/sdk.js", "GET /_emulator/platform-helper.js")
_OF_TESTS = ("POST /_ns", "PUT /_emulator/seed", "GET /_emulator/wait", "POST /_emulator/reset")
"""Requests that a test makes first: a namespace, a seed, a wait."""


async def read(service: Service, query: Query) -> dict[str, Any]:
    """Return the values of the overview."""
    registered = sorted(service.extensions.current)
    seen = service.parity.tally.seen
    unknown = [each for each in seen if each.verdict == UNKNOWN]
    words, _ = await service.engine.ballots.tally(_DEMO_WORDS, now=service.clock.now(), top=3)
    return {
        "readiness": await service.control.readiness(),
        "verdicts": [each for each in seen if each.verdict != UNKNOWN],
        "unknown": sum(each.count for each in unknown if each.rule != rule_of(FOR_SANDBOX)),
        "has_sandbox_tokens": any(each.rule == rule_of(FOR_SANDBOX) for each in unknown),
        "client_id": registered[0] if registered else suggested(service, Query()).client_id,
        "channel_id": DEFAULT_CHANNEL,
        "registered": registered[:_MOST],
        "unlisted": max(0, len(registered) - _MOST),
        "next": next(iter((await service.contents.upcoming(1)).next), None),
        "poll": await _busiest(service),
        "words": words,
        **_latest_activity(service),
    }


def _latest_activity(service: Service) -> dict[str, Any]:
    """Return a summary of the journal's last minute, and its latest entries."""
    journal = service.journal
    recent = [each for each in journal.newest(_LOOKED_AT) if not each.is_probe]
    now = service.clock.now()
    young = [each for each in recent if 0 <= _age_in_seconds(each, now) < _SECONDS]
    votes = Counter(
        _age_in_seconds(each, now) for each in young if each.name == "POST /v1/e/vote" and each.status < 400
    )
    return {
        "curve": [votes[age] for age in range(_SECONDS - 1, -1, -1)],
        "votes": sum(votes[age] for age in range(1, 6)) / 5,
        "refused": sum(bool(each.reason) for each in young),
        "ticker": recent[:_TICKER],
        "has_page": service.sockets > 0 or any(each.name in _SCRIPTS for each in recent),
        "has_test": any(each.kind == REQUEST and each.name.startswith(_OF_TESTS) for each in recent),
    }


def _age_in_seconds(entry: Entry, now: int) -> int:
    """Return the whole seconds since an entry, by the service's clock."""
    return (now - entry.at) // SECOND


async def _busiest(service: Service) -> dict[str, Any] | None:
    """Return the poll with the most recent votes, otherwise the one that changed last; `None` without any."""
    counts = Counter(each.key for each in service.changes.latest("poll", _RECENT_VOTES))
    keys = [key for key, _ in counts.most_common()]
    if not keys:
        rows = (await service.contents.page("polls", Filter(), limit=_MOST)).rows
        rows = sorted(rows, key=lambda each: -(each.latest or 0))
        keys = [Key("poll", each.client_id, each.id, each.channel_id) for each in rows[:1]]
    for key in keys:
        poll = await results_of(service, key)
        if poll["exists"]:
            return poll
    return None


SCREENS = (Screen("overview", "Overview", read, every=1.0),)
