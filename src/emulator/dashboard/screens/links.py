"""Channels that games are linked to, and ending the links of one."""

from __future__ import annotations

from typing import Any

from emulator.dashboard.screen import Query, Screen, Service, listed


async def read(service: Service, query: Query) -> dict[str, Any]:
    """Return the channels with links. Raises `BadRequest`."""
    return await listed(service, "links", query)


SCREEN = Screen("links", "Links", read)
