"""The overview: how to connect, what the service holds, and its clock."""

from __future__ import annotations

from typing import Any

from emulator.dashboard.screen import Query, Screen, Service


async def read(service: Service, query: Query) -> dict[str, Any]:
    """Return the values of the overview."""
    readiness = await service.control.readiness()
    clock = service.control.read_clock()
    return {
        "version": readiness.version,
        "environment": readiness.environment,
        "storage": readiness.data,
        "clock": clock,
        "things": await service.size(),
        "sockets": service.sockets,
        "requests": service.journal.mark,
    }


SCREEN = Screen("overview", "Overview", read)
