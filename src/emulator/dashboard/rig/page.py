"""The page of the rig, and the calls that each of its frames made: the journal's entries with the frame's user."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

from markupsafe import Markup

from emulator.control.explanations import explanation_of
from emulator.control.journal.service import JournalCaller
from emulator.core.callers import opaque_id_of
from emulator.core.errors import BadRequest
from emulator.dashboard.rig import arrangement as rules
from emulator.dashboard.rig.framing import Finding, check_page
from emulator.dashboard.screen import Query, Service

SANDBOX = "allow-scripts allow-same-origin allow-forms"
"""With these, a page of the service could remove its own sandbox; `arrangement` refuses such pages."""
_ROWS = 20
_READ = "200"
"""Entries to read; the refused are counted, and calls of anonymous viewers are looked for."""

Render = Callable[[str, Mapping[str, Any]], str]
"""Renders a template with values."""


async def rig_page(service: Service, query: Query, base: str, render: Render) -> tuple[str, dict[str, str], int, str]:
    """Return the rig with the arrangement of the query: the content, `frame_activity`, the status, the frames' origin.

    `base` is the URL of the service. An invalid arrangement is status 400, with the form as it was filled in.
    """
    arrangement, problem, status = None, "", 200
    findings, lists = list[Finding](), dict[str, str]()
    client_id = next(iter(service.extensions.current), rules.DEFAULT_CLIENT)
    if any(query[name] for name in ("url", "config", "live")):
        try:
            arrangement = rules.arrangement_of(query, base, client_id=client_id)
        except BadRequest as error:
            problem, status = error.detail, error.status
    if arrangement is not None:
        urls = dict.fromkeys(frame.url for frame in arrangement.frames)
        findings = await asyncio.gather(*(check_page(url, base) for url in urls))
        lists = await frame_activity(service, query, base, render)
    values = {
        "rig": arrangement,
        "problem": problem,
        "findings": [each for each in findings if each.text],
        "client_id": client_id,
        "rules": rules,
        "sandbox": SANDBOX,
        "did": {name: Markup(text) for name, text in lists.items()},
    }
    return render("rig.html", values), lists, status, arrangement.origin if arrangement else ""


async def frame_activity(service: Service, query: Query, base: str, render: Render) -> dict[str, str]:
    """Return the calls and the count of each frame by the id of its element; none for an invalid arrangement."""
    if not service.journal.is_on:
        return {}
    try:
        frames = rules.arrangement_of(query, base).frames
    except BadRequest:
        return {}
    regions = dict[str, str]()
    for frame in frames:
        found, has_more = await _entries(service, frame)
        refused = sum(bool(each.reason) for each in found)
        count = {"refused": refused, "most": len(found) if has_more else 0}
        regions[f"refused-{frame.name}"] = render("refused.html", count)
        calls = []
        for each in found[:_ROWS]:
            entry = service.journals.find(str(each.number)) if each.reason else None
            calls.append((each, entry and explanation_of(entry)))
        regions[f"did-{frame.name}"] = render("happened.html", {"frame": frame.name, "calls": calls})
    return regions


async def _entries(service: Service, frame: rules.Frame) -> tuple[list[Any], bool]:
    """Return the latest entries of a frame's user, newest first, and whether the journal has earlier ones."""
    identity = frame.settings["identity"]
    is_anonymous = identity == "anonymous"
    only = {name: frame.settings[name] for name in ("client_id", "channel_id", "role")} | {"limit": _READ}
    if not is_anonymous:
        only["user"] = opaque_id_of(frame.user_id) if identity == "unshared" else frame.user_id
    listing = await service.journals.page(only)
    found = listing.entries
    if is_anonymous:
        found = [each for each in found if _is_of_anonymous(each.caller)]
    return found, listing.next is not None


def _is_of_anonymous(caller: JournalCaller | None) -> bool:
    return caller is not None and not caller.user_id and caller.opaque_id.startswith("A")
