"""Faults: failures on purpose, with their hits; usual ones, a form for any, removal."""

from __future__ import annotations

from typing import Any

from emulator.control.faults import ALL_EFFECTS
from emulator.core.errors import Conflict
from emulator.core.faults import Fault
from emulator.dashboard.screen import Query, Screen, Service
from emulator.dashboard.texts import instant

_CONDITIONS = ("role", "channel", "user", "client_id", "event")


async def read(service: Service, query: Query) -> dict[str, Any]:
    """Return the faults, oldest first, or why this service accepts none."""
    common = {"effects": ALL_EFFECTS, "why_not": ""}
    try:
        faults = service.faults.read().faults
    except Conflict as error:
        return common | {"faults": [], "why_not": error.detail}
    now = service.clock.now()
    rows = [(each, effect_of(each), conditions_of(each), remaining_limits(each), is_over(each, now)) for each in faults]
    return common | {"faults": rows}


def effect_of(fault: Fault) -> str:
    """Return the effect of a fault with its parameters: `status 503, retry after 1 s`."""
    match fault.effect:
        case "status":
            after = "" if fault.retry_after is None else f", retry after {fault.retry_after} s"
            return f"status {fault.status or 503}{after}"
        case "delay":
            return f"delay {fault.delay} ms" + ("" if fault.delay_max is None else f" to {fault.delay_max} ms")
        case "truncate":
            return f"truncate after {fault.bytes or 0} bytes"
        case "close":
            return f"close {fault.code or 1012}"
    return fault.effect


def conditions_of(fault: Fault) -> list[tuple[str, str]]:
    """Return the conditions of a fault besides its match, by name."""
    return [(name.replace("_", " "), getattr(fault, name)) for name in _CONDITIONS if getattr(fault, name)]


def remaining_limits(fault: Fault) -> list[str]:
    """Return the limits of a fault in words: `2 of 3`, `10 % of them`, `until 2033-05-18 03:34:20.000 UTC`."""
    times = [] if fault.left is None else [f"{fault.left:,} of {fault.times:,}"]
    share = [] if fault.share is None else [f"{fault.share * 100:.4g} % of them"]
    return times + share + ([] if fault.ends_at is None else [f"until {instant(fault.ends_at)}"])


def is_over(fault: Fault, now: int) -> bool:
    """Whether a fault no longer acts."""
    return fault.left == 0 or (fault.ends_at is not None and fault.ends_at <= now)


SCREENS = (Screen("faults", "Faults", read, refresh_seconds=1.0),)
