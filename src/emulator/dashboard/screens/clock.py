"""The clock: the time by both clocks, the next expiries, and moves."""

from __future__ import annotations

from typing import Any, Final

from emulator.clock import DAY, HOUR, MINUTE
from emulator.dashboard.screen import Query, Screen, Service

_STEPS: Final = (("1 min", MINUTE), ("5 min", 5 * MINUTE), ("1 h", HOUR))
"""Moves that the screen offers."""
_LONG_STEPS: Final = (
    ("1 d", DAY, "This deletes stores, rankings and buffers that are not written until then."),
    ("8 d", 8 * DAY, "This deletes nearly all data, polls too: only codes and links live longer."),
)
"""Moves that ask first, with what they delete."""
_COMING: Final = 50
"""Expiries that the screen lists."""


async def read(service: Service, query: Query) -> dict[str, Any]:
    """Return the values of the clock."""
    clock = service.control.read_clock()
    return {
        "clock": clock,
        "system": clock.now - clock.offset,
        "can_move": not service.settings.has_peers,
        "steps": _STEPS,
        "long_steps": _LONG_STEPS,
        "coming": (await service.contents.upcoming(_COMING)).next,
    }


SCREEN = Screen("clock", "Clock", read, every=1.0)
