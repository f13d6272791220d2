"""The page of the rig, and the calls that its frames made: the journal's entries of their users."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

from markupsafe import Markup

from emulator.control.explanations import explanation_of
from emulator.core.callers import Caller, opaque_id_of
from emulator.core.errors import BadRequest
from emulator.core.journal import DELIVERY
from emulator.dashboard.rig import arrangement as rules
from emulator.dashboard.rig.framing import Finding, check_page
from emulator.dashboard.screen import Query, Service

SANDBOX = "allow-scripts allow-same-origin allow-forms"
"""With these, a page of the service could remove its own sandbox; `arrangement` refuses such pages."""
_MAX_CALLS = 50
_MAX_ENTRIES_READ = 2_000
"""Entries of the journal in which calls of the frames are looked for."""

Render = Callable[[str, Mapping[str, Any]], str]
"""Renders a template with values."""


async def rig_page(service: Service, query: Query, base: str, render: Render) -> tuple[str, dict[str, str], int, str]:
    """Return the rig with the arrangement of the query: the content, `frame_calls`, the status, the frames' origin.

    `base` is the URL of the service. An invalid arrangement is status 400, with the form as it was filled in.
    """
    arrangement, problem, status = None, "", 200
    findings = list[Finding]()
    if any(query[name] for name in ("url", "config", "live")):
        try:
            arrangement = rules.parse_arrangement(query, base, client_id=_default_client(service))
        except BadRequest as error:
            problem, status = error.detail, error.status
    if arrangement is not None:
        urls = dict.fromkeys(frame.url for frame in arrangement.frames)
        findings = await asyncio.gather(*(check_page(url, base) for url in urls))
    regions = frame_calls(service, query, base, render)
    values = {
        "rig": arrangement,
        "problem": problem,
        "findings": [each for each in findings if each.text],
        "client_id": _default_client(service),
        "rules": rules,
        "sandbox": SANDBOX,
        "calls": Markup(regions.get("calls", "")),
    }
    return render("rig.html", values), regions, status, arrangement.origin if arrangement else ""


def frame_calls(service: Service, query: Query, base: str, render: Render) -> dict[str, str]:
    """Return the latest calls of all frames by the id of their element; none for an invalid arrangement."""
    try:
        frames = rules.parse_arrangement(query, base, client_id=_default_client(service)).frames
    except BadRequest:
        return {}
    calls = []
    for entry in service.journal.newest(_MAX_ENTRIES_READ):
        made_by = [frame for frame in frames if entry.kind != DELIVERY and _is_user_of_frame(frame, entry.caller)]
        if made_by:
            calls.append((entry, made_by, explanation_of(entry)))
        if len(calls) == _MAX_CALLS:
            break
    return {"calls": render("calls.html", {"calls": calls})}


def _default_client(service: Service) -> str:
    return next(iter(service.extensions.current), rules.DEFAULT_CLIENT)


def _is_user_of_frame(frame: rules.Frame, caller: Caller | None) -> bool:
    """Whether a caller is the user of a frame. Anonymous viewers are not told apart."""
    settings = frame.settings
    if caller is None or any(getattr(caller, name) != settings[name] for name in ("client_id", "channel_id", "role")):
        return False
    if settings["identity"] == "anonymous":
        return not caller.user_id and caller.opaque_id.startswith("A")
    return caller.opaque_id == opaque_id_of(frame.user_id)
