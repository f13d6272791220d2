"""Faults: there are none to inject yet."""

from __future__ import annotations

from typing import Any

from emulator.dashboard.screen import Query, Screen, Service


async def read(service: Service, query: Query) -> dict[str, Any]:
    """Return nothing: the service injects no faults."""
    return {}


SCREEN = Screen("faults", "Faults", read)
