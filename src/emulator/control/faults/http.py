"""`/_emulator/faults`: add, list, replace and remove faults."""

from __future__ import annotations

from typing import Final

from msgspec import UNSET

from emulator.control.faults.rules import Fault
from emulator.control.faults.service import FaultList, FaultPlan, Removal, Removed
from emulator.http.endpoint import Audience, Call, Parameter, endpoint

_ID = Parameter("id", "The id of the fault; all when absent.")


@endpoint("POST", "/_emulator/faults", audience=Audience.CONTROL, body=Fault, answer=Fault)
async def add_fault(faults: FaultPlan, call: Call) -> Fault:
    """Add a fault, or replace the one with the same id.

    `match` is a method and a path, `SOCKET` with the action and target of a game's message, `SOCKET connect`, or
    `BROADCAST` with an event. Only one fault acts on a request: the oldest that matches and is due. A response that a
    fault changed or delayed has the header `X-Emulator-Fault`. A reset removes all faults.
    """
    return faults.add(call.body(Fault))


@endpoint("GET", "/_emulator/faults", audience=Audience.CONTROL, answer=FaultList)
async def list_faults(faults: FaultPlan, call: Call) -> FaultList:
    """List all faults with their hits, oldest first."""
    return faults.read()


@endpoint("PUT", "/_emulator/faults", audience=Audience.CONTROL, body=FaultList, answer=FaultList)
async def replace_faults(faults: FaultPlan, call: Call) -> FaultList:
    """Replace all faults; if one is invalid, nothing changes. Hits count from 0 again."""
    return faults.replace(call.body(FaultList))


@endpoint("DELETE", "/_emulator/faults", audience=Audience.CONTROL, query=(_ID,), answer=Removed)
async def remove_faults(faults: FaultPlan, call: Call) -> Removed:
    """Remove one fault, or all. Requests and broadcasts that it held back continue."""
    return faults.remove(call.query.get("id"))


@endpoint("POST", "/_emulator/faults/remove", audience=Audience.CONTROL, body=Removal, answer=Removed)
async def remove_faults_by_form(faults: FaultPlan, call: Call) -> Removed:
    """Remove one fault, or all, as DELETE does: HTML forms know POST only."""
    id = call.body(Removal).id
    return faults.remove(None if id is UNSET else id)


endpoints: Final = (add_fault, list_faults, replace_faults, remove_faults, remove_faults_by_form)
