"""Rankings: a list of all, and one with its most frequent answers."""

from __future__ import annotations

from typing import Any

from emulator.core.keys import Key
from emulator.dashboard.commands import CALLER, field, record_command
from emulator.dashboard.screen import Query, Service, entries, manager_of, screen_of_records
from emulator.features.ranking import TOP


async def _ranking(service: Service, key: Key, query: Query) -> dict[str, Any]:
    counts, _ = await service.engine.ballots.tally(key, now=service.clock.now(), top=TOP)
    start = query.get("from", "")
    page = await entries(service, key, start)
    manager = manager_of(key)
    return {
        "exists": bool(counts),
        "top": TOP,
        "scores": counts,
        "users": sum(score for _, score in counts),
        "answers": page.rows,
        "start": start,
        "next": page.next,
        "manager": manager,
        "submitting": record_command("rank", "submit", key.name, field("body.key", "--key"), CALLER, key=key),
        "reading": record_command("rank", "get", key.name, key=key),
        "deleting": record_command("rank", "rm", key.name, key=key, role=manager),
    }


SCREENS = (screen_of_records("rankings", "Rankings", "rank", _ranking),)
