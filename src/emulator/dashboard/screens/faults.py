"""Faults: failures on purpose, with their hits; usual ones, a form for any, removal."""

from __future__ import annotations

from typing import Any

from msgspec.structs import asdict

from emulator.contract.faults import CONDITIONS, EFFECTS, effect_text, remaining_limits
from emulator.core.errors import Conflict
from emulator.core.faults import ArmedFault, Fault
from emulator.dashboard.screen import Query, Screen, Service
from emulator.dashboard.texts import instant


async def read(service: Service, query: Query) -> dict[str, Any]:
    """Return the faults, oldest first, or why this service accepts none."""
    common = {"effects": EFFECTS, "why_not": ""}
    try:
        service.faults.read()  # several processes have none
    except Conflict as error:
        return common | {"faults": [], "why_not": error.detail}
    return common | {"faults": list(map(_fault_row, service.faults.all().values()))}


def _fault_row(armed: ArmedFault) -> tuple[object, ...]:
    """Return a fault with its effect, its conditions by name, its limits, and whether it is over."""
    members = asdict(armed.fault)
    conditions = {name.replace("_", " "): members[name] for name in CONDITIONS if members[name]}
    return armed.fault, effect_of(armed.fault), conditions, remaining_limits(members, instant), armed.is_over


def effect_of(fault: Fault) -> str:
    """Return the effect of a fault with its parameters: `status 503, retry after 1 s`."""
    return effect_text(asdict(fault), "{} ms".format)


SCREENS = (Screen("faults", "Faults", read, refresh_seconds=1.0),)
