"""Trivia: the extensions with questions, and one extension's questions with the forms that edit and play them."""

from __future__ import annotations

from typing import Any

from emulator.dashboard.screen import Query, Screen, Service, listed, suggested
from emulator.features.trivia.rules import State, contest_key, decoded_contest, sort_order


async def read(service: Service, query: Query) -> dict[str, Any]:
    """Return the list of extensions with questions, or the questions of one. Raises `BadRequest`."""
    id = query.get("id", "")
    shared = {
        "suggested": suggested(service, {**query, "client_id": id or query.get("client_id", "")}),
        "id": id,
        "states": [(state.value, state.removeprefix("state-")) for state in State],
    }
    if not id:
        return {**shared, **await listed(service, "trivia", query)}
    key, now = contest_key(id), service.clock.now()
    contest = decoded_contest((await service.engine.documents.read([key], now=now)).get(key))
    return {
        **shared,
        "questions": sorted(contest.values(), key=sort_order),
        "fresh": f"A{service.journal.mark}",
        "is_missing": not contest,
    }


SCREEN = Screen("trivia", "Trivia", read)
