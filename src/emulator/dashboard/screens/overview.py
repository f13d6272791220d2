"""The overview: how to connect, what the service holds, and what production would do differently."""

from __future__ import annotations

from typing import Any, Final

from msgspec import to_builtins

from emulator.dashboard.screen import Query, Screen, Service
from emulator.parity.rules import UNKNOWN

_EXAMPLE: Final = "my-extension"
_MOST: Final = 50
"""Extensions and namespaces that the screen names."""
_LOOKED_AT: Final = 100
"""Entries of the journal in which the client id of the examples is looked for."""


async def read(service: Service, query: Query) -> dict[str, Any]:
    """Return the values of the overview."""
    readiness = await service.control.readiness()
    engine, settings, journal = service.engine, service.settings, service.journal
    return {
        "current": service.name,
        "version": readiness.version,
        "environment": readiness.environment,
        "storage": engine.name,
        "location": engine.location,
        "is_kept": engine.survives_restart,
        "can_undo": engine.can_copy and not settings.has_peers,
        "clock": service.control.read_clock(),
        "things": await service.size(),
        "counts": to_builtins(await service.contents.counts()),
        "verdicts": [each for each in service.parity.tally.seen if each.verdict != UNKNOWN],
        "unknown": sum(each.count for each in service.parity.tally.seen if each.verdict == UNKNOWN),
        "sockets": service.sockets,
        "faults": len(service.faults),
        "held": len(service.dispatcher.held),
        "journal": journal,
        "client_id": _client_id(service),
        "channel_id": "1001",
        "registered": sorted(service.extensions.current)[:_MOST],
        "unlisted": max(0, len(service.extensions.current) - _MOST),
        "has_peers": settings.has_peers,
        "namespaces": service.namespaces.names(_MOST) if service.namespaces is not None else [],
        "undo": service.undo.latest(),
    }


def _client_id(service: Service) -> str:
    """Return the client id for examples: a registered one, or that of the latest request, or one made up."""
    if service.extensions.current:
        return min(service.extensions.current)
    for entry, _ in zip(service.journal.newest(), range(_LOOKED_AT), strict=False):
        if entry.caller is not None:
            return entry.caller.client_id
    return _EXAMPLE


SCREEN = Screen("overview", "Overview", read)
