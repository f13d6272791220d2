"""The namespaces of the process: list, create, fork, drop."""

from __future__ import annotations

from typing import Any, Final

from emulator.dashboard.screen import Query, Screen, Service

_MOST: Final = 200
"""Namespaces that the screen lists."""


async def read(service: Service, query: Query) -> dict[str, Any]:
    """Return the values of the namespaces, those used last first."""
    assert service.namespaces is not None, "the sandbox has namespaces"
    details = (await service.namespaces.listing(_MOST)).details
    details.sort(key=lambda each: (each.idle, each.name))
    return {
        "details": details,
        "more": len(await service.namespaces.latest()) - len(details),
        "current": service.name,
        "can_fork": service.engine.can_copy,
        "storage": service.engine.name,
    }


SCREEN = Screen("namespaces", "Namespaces", read, every=1.0)
