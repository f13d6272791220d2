"""The frame of every page: the state of the service and the navigation, live in the stream of the page."""

from __future__ import annotations

from contextlib import suppress
from typing import Any, Final

from emulator.core.errors import Conflict, EngineError
from emulator.core.observability.request_context import DEFAULT_NAMESPACE as DEFAULT
from emulator.dashboard.screen import Service
from emulator.dashboard.screens.faults import effect_of, is_over

_LOOKED_AT: Final = 2_000
"""Entries of the journal in which the latest refusal is looked for."""
_NAMESPACES: Final = 30
"""Namespaces that the switcher offers."""


async def frame_of(service: Service) -> dict[str, Any]:
    """Return the values that the header and navigation show. Values from storage are left out if storage fails."""
    counts: dict[str, int] = {}
    names: list[str] = []
    with suppress(EngineError):
        held = await service.contents.counts()
        for kind in service.contents.kinds:
            counts[kind.screen] = counts.get(kind.screen, 0) + held[kind.name]
        names = await service.namespaces.latest() if service.namespaces is not None else []
    faults, now = [], service.clock.now()
    with suppress(Conflict):  # several processes have none
        faults = [effect_of(each) for each in service.faults.read().faults if not is_over(each, now)]
    recent = service.journal.newest(_LOOKED_AT)
    live = {"requests": len(service.journal), "sockets": service.sockets, "faults": len(faults)}
    return {
        "groups": {
            "": ("overview",),
            "Data": tuple(dict.fromkeys(kind.screen for kind in service.contents.kinds if kind.screen)),
            "Live": ("requests", "broadcasts", "sockets", "rig"),
            "Control": ("clock", "faults", "namespaces"),
        },
        "counts": {**counts, **live, "namespaces": len(names) + 1},
        "namespaces": [DEFAULT, *names[:_NAMESPACES]],
        "clock": service.clock,
        "faults": faults,
        "refused": next((each for each in recent if each.reason and not each.is_probe), None),
        "undo": service.undo.latest,
    }
