"""Purchases that no game has settled yet, and a form that makes one."""

from __future__ import annotations

from typing import Any

from emulator.dashboard.screen import Query, Screen, Service, listed, suggested


async def read(service: Service, query: Query) -> dict[str, Any]:
    """Return the outstanding purchases. Raises `BadRequest`."""
    return {"suggested": suggested(service, query), **await listed(service, "purchases", query)}


SCREEN = Screen("purchases", "Purchases", read)
