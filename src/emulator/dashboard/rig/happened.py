"""The calls that each frame of the rig made: the entries of the journal with the user of the frame."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from emulator.callers import opaque_id_of
from emulator.dashboard.rig.arrangement import Frame, arrangement_of, with_buttons
from emulator.dashboard.screen import Query, Service
from emulator.errors import BadRequest

_ROWS: Final = 20
_READ: Final = "200"
"""Entries that are searched for calls of anonymous viewers."""


async def happened(
    service: Service, query: Query, host: str, render: Callable[[str, Mapping[str, Any]], str]
) -> dict[str, str]:
    """Return a list of calls for each frame by the id of its element; none for an invalid arrangement."""
    if not service.journal.is_on:
        return {}
    try:
        frames = arrangement_of(with_buttons(query), host).frames
    except BadRequest:
        return {}
    return {
        f"did-{frame.name}": render("happened.html", {"frame": frame.name, "calls": await _calls(service, frame)})
        for frame in frames
    }


async def _calls(service: Service, frame: Frame) -> list[tuple[Any, Any]]:
    """Return the latest entries of a frame's user, newest first, each with its explanation if it was refused."""
    user = frame.channel_id if frame.role == "broadcaster" else frame.user_id
    if frame.identity == "unshared":
        user = opaque_id_of(user)
    is_anonymous = frame.identity == "anonymous"
    only = {"client_id": frame.client_id, "channel_id": frame.channel_id, "role": frame.role, "limit": _READ}
    listing = await service.journals.page(only if is_anonymous else {**only, "user": user})
    found = [
        each
        for each in listing.entries
        if not is_anonymous or (each.caller and not each.caller.user_id and each.caller.opaque_id.startswith("A"))
    ]
    return [
        (each, service.explanations.explain(service.journals.find(str(each.number))) if each.reason else None)
        for each in found[:_ROWS]
    ]
