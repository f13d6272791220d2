"""The calls that each frame of the rig made, and how many were refused: the journal's entries with the frame's user."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from emulator.control.explanations import explanation_of
from emulator.core.callers import opaque_id_of
from emulator.core.errors import BadRequest
from emulator.dashboard.rig.arrangement import Frame, arrangement_of, with_buttons
from emulator.dashboard.screen import Query, Service

_ROWS: Final = 20
_READ: Final = "200"
"""Entries to read; the refused are counted, and calls of anonymous viewers are looked for."""


async def frame_activity(
    service: Service, query: Query, host: str, render: Callable[[str, Mapping[str, Any]], str]
) -> dict[str, str]:
    """Return the calls and the count of each frame by the id of its element; none for an invalid arrangement."""
    if not service.journal.is_on:
        return {}
    try:
        frames = arrangement_of(with_buttons(query), host).frames
    except BadRequest:
        return {}
    regions = dict[str, str]()
    for frame in frames:
        found, has_more = await _entries(service, frame)
        count = {"refused": sum(bool(each.reason) for each in found), "most": len(found) if has_more else 0}
        regions[f"refused-{frame.name}"] = render("refused.html", count)
        calls = [
            (each, explanation_of(service.journals.find(str(each.number))) if each.reason else None)
            for each in found[:_ROWS]
        ]
        regions[f"did-{frame.name}"] = render("happened.html", {"frame": frame.name, "calls": calls})
    return regions


async def _entries(service: Service, frame: Frame) -> tuple[list[Any], bool]:
    """Return the latest entries of a frame's user, newest first, and whether the journal has earlier ones."""
    identity = frame.settings["identity"]
    is_anonymous = identity == "anonymous"
    only = {
        "client_id": frame.client_id,
        "channel_id": frame.channel_id,
        "role": frame.settings["role"],
        "limit": _READ,
    }
    if not is_anonymous:
        only["user"] = opaque_id_of(frame.user_id) if identity == "unshared" else frame.user_id
    listing = await service.journals.page(only)
    found = [
        each
        for each in listing.entries
        if not is_anonymous or (each.caller and not each.caller.user_id and each.caller.opaque_id.startswith("A"))
    ]
    return found, listing.next is not None
