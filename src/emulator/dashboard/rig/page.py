"""The page of the rig. Its event stream has no content: the extension's frames update themselves."""

from __future__ import annotations

import asyncio
from typing import Final

from markupsafe import Markup

from emulator.core.errors import BadRequest
from emulator.dashboard.pages import Pages
from emulator.dashboard.rig import arrangement as rules
from emulator.dashboard.rig.framing import Finding, check_page
from emulator.dashboard.rig.happened import frame_activity
from emulator.dashboard.screen import Query
from emulator.http.response import Reply

SANDBOX: Final = "allow-scripts allow-same-origin allow-forms"
"""With these, a page of the service could remove its own sandbox; `arrangement` refuses such pages."""


async def rig_page(pages: Pages, query: Query) -> Reply:
    """Return the rig with the arrangement of the query.

    An invalid arrangement is status 400, with the form as it was filled in.
    """
    query = rules.with_buttons(query)
    arrangement, findings, problem, status = None, list[Finding](), "", 200
    client_id = next(iter(pages.service.extensions.current), rules.DEFAULT_CLIENT)
    if any(query.get(name) for name in ("url", "config", "live")):
        try:
            arrangement = rules.arrangement_of(query, pages.host, client_id=client_id)
        except BadRequest as error:
            problem, status = error.detail, error.status
    service = pages.base_url
    if arrangement is not None:
        urls = dict.fromkeys(frame.url for frame in arrangement.frames)
        findings = await asyncio.gather(*(check_page(url, service) for url in urls))
    lists = await frame_activity(pages.service, query, pages.host, pages.render) if arrangement is not None else {}
    content = pages.render(
        "rig.html",
        {
            "query": query,
            "rig": arrangement,
            "problem": problem,
            "findings": [each for each in findings if each.text],
            "service": service,
            "client_id": client_id,
            "rules": rules,
            "sandbox": SANDBOX,
            "did": {name: Markup(text) for name, text in lists.items()},
        },
    )
    frames = arrangement.origin if arrangement else ""
    return await pages.whole("rig", query, content, status, is_live=False, frames=frames, parts=lists)
