"""Faults: failures on purpose, with their hits; usual ones, a form for any, removal."""

from __future__ import annotations

from typing import Any

from msgspec.structs import asdict

from emulator.contract.faults import CONDITIONS, EFFECTS, effect_text, remaining_limits
from emulator.core.errors import Conflict
from emulator.core.faults import Fault
from emulator.dashboard.screen import Query, Screen, Service
from emulator.dashboard.texts import instant


async def read(service: Service, query: Query) -> dict[str, Any]:
    """Return the faults, oldest first, or why this service accepts none."""
    common = {"effects": EFFECTS, "why_not": ""}
    try:
        faults = service.faults.read().faults
    except Conflict as error:
        return common | {"faults": [], "why_not": error.detail}
    now = service.clock.now()
    return common | {"faults": [_fault_row(each, now) for each in faults]}


def _fault_row(fault: Fault, now: int) -> tuple[Fault, str, dict[str, str], str, bool]:
    """Return a fault with its effect, its conditions by name, its limits, and whether it is over."""
    members = asdict(fault)
    conditions = {name.replace("_", " "): members[name] for name in CONDITIONS if members[name]}
    return fault, effect_of(fault), conditions, remaining_limits(members, instant), is_over(fault, now)


def effect_of(fault: Fault) -> str:
    """Return the effect of a fault with its parameters: `status 503, retry after 1 s`."""
    return effect_text(asdict(fault), "{} ms".format)


def is_over(fault: Fault, now: int) -> bool:
    """Whether a fault no longer acts."""
    return fault.left == 0 or (fault.ends_at is not None and fault.ends_at <= now)


SCREENS = (Screen("faults", "Faults", read, refresh_seconds=1.0),)
