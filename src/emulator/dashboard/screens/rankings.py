"""Rankings: a list of all, and one with its most frequent answers."""

from __future__ import annotations

from typing import Any

from emulator.core.callers import GLOBAL
from emulator.core.keys import Key
from emulator.dashboard.commands import CALLER, field, record_command
from emulator.dashboard.screen import Query, Screen, Service, chosen, entries, listed, manager_of
from emulator.features.ranking import TOP


async def read(service: Service, query: Query) -> dict[str, Any]:
    """Return the list of rankings, or one ranking. Raises `BadRequest`."""
    key = chosen("rank", query)
    if key is None:
        return {"ranking": None, **await listed(service, "rankings", query)}
    ranking = await _ranking(service, key, query)
    return {"ranking": ranking, "is_missing": not ranking["exists"]}


async def _ranking(service: Service, key: Key, query: Query) -> dict[str, Any]:
    now = service.clock.now()
    counts, _ = await service.engine.ballots.tally(key, now=now, top=TOP)
    start = query.get("from", "")
    page = await entries(service, key, start)
    manager = manager_of(key, GLOBAL)
    return {
        "id": key.name,
        "client_id": key.owner,
        "channel_id": key.channel,
        "exists": bool(counts),
        "top": TOP,
        "scores": counts,
        "users": sum(score for _, score in counts),
        "answers": page.rows,
        "start": start,
        "next": page.next,
        "now": now,
        "manager": manager,
        "submitting": record_command("rank", "submit", key.name, field("body.key", "--key"), CALLER, key=key),
        "reading": record_command("rank", "get", key.name, key=key),
        "deleting": record_command("rank", "rm", key.name, key=key, role=manager),
    }


SCREENS = (Screen("rankings", "Rankings", read),)
