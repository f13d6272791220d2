"""The overview: how to connect, what the service holds, and what production would do differently."""

from __future__ import annotations

from typing import Any, Final

from msgspec import to_builtins

from emulator.dashboard.rig.arrangement import DEFAULT_CHANNEL
from emulator.dashboard.screen import Query, Screen, Service, suggested
from emulator.parity.rules import FOR_SANDBOX, UNKNOWN, rule_of

_MOST: Final = 50
"""Extensions and namespaces that the screen names."""


async def read(service: Service, query: Query) -> dict[str, Any]:
    """Return the values of the overview."""
    readiness = await service.control.readiness()
    engine, settings, journal = service.engine, service.settings, service.journal
    registered = sorted(service.extensions.current)
    seen = service.parity.tally.seen
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
        "verdicts": [each for each in seen if each.verdict != UNKNOWN],
        "unknown": sum(each.count for each in seen if each.verdict == UNKNOWN and each.rule != rule_of(FOR_SANDBOX)),
        "has_sandbox_tokens": any(each.verdict == UNKNOWN and each.rule == rule_of(FOR_SANDBOX) for each in seen),
        "sockets": service.sockets,
        "faults": len(service.faults),
        "held": len(service.dispatcher.held),
        "journal": journal,
        "client_id": registered[0] if registered else suggested(service, {}).client_id,
        "channel_id": DEFAULT_CHANNEL,
        "registered": registered[:_MOST],
        "unlisted": max(0, len(registered) - _MOST),
        "has_peers": settings.has_peers,
        "namespaces": await service.namespaces.latest(_MOST) if service.namespaces is not None else [],
    }


SCREEN = Screen("overview", "Overview", read)
