"""Reward codes: sets, users with grants or codes, and forms to upload, mark, redeem and delete. Codes are masked."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice, zip_longest
from typing import Any

import msgspec

from emulator.contract.limits import MAX_SETS
from emulator.control.contents import Filter
from emulator.core.wire.cursors import FIRST
from emulator.dashboard.screen import Query, Screen, Service, Suggested, suggested, viewer_of

ROWS = 200
_LATEST = 50
"""Requests for a code that are shown."""
_LOOKED_AT = 5_000
"""Entries of the journal that one view looks at."""
_MARK = "/v1/e/codes/mark_from_poll?id="
_REDEEM = "POST /v1/e/codes/redeem"
_SHOWN = 20
"""Redeemed codes of one set that are shown, masked."""


async def read(service: Service, query: Query) -> dict[str, Any]:
    """Return the code sets of all extensions, and one user's grants and codes."""
    client_id, user = query["client_id"], query["user"]
    found = await service.contents.page("codes", Filter(client_id), limit=ROWS)
    place = suggested(service, query)
    polls = await service.contents.page("polls", Filter(*place), limit=ROWS)
    names = {row.id: f"{row.id}, {row.name}" for row in found.rows if row.client_id == place.client_id}
    return {
        "rows": found.rows,
        "is_whole": found.next == FIRST,
        "redemptions": list(islice(_redemptions(service, client_id), _LATEST)),
        "sets": [(index, names.get(index, index)) for index in map(str, range(MAX_SETS))],
        "polls": [(f"{_MARK}{row.id}", row.id) for row in polls.rows] or [(f"{_MARK}default", "default")],
        "shares": await _shares_of_user(service, place, user) if user else [],
    }


async def _shares_of_user(service: Service, place: Suggested, user: str) -> list[dict[str, Any]]:
    """Return the sets of which a user may redeem codes, or has redeemed some, with the first ones, masked."""
    viewer = await viewer_of(service, *place, user)
    eligible = await service.code_sets.eligibility(viewer)
    redeemed = await service.code_sets.redeemed_codes(viewer)
    shares = []
    for index, (left, codes) in enumerate(zip_longest(eligible, redeemed)):
        if left or codes:
            shown = [masked(code) for code in (codes or ())[:_SHOWN]]
            shares.append({"set": index, "eligible": left or 0, "redeemed": len(codes or ()), "masked": shown})
    return shares


def _redemptions(service: Service, client_id: str) -> Iterator[dict[str, Any]]:
    """Yield the latest requests for a code of an extension, or of all, newest first, each with the index of its set."""
    for entry in service.journal.newest(_LOOKED_AT):
        caller = entry.caller
        if entry.name == _REDEEM and caller is not None and client_id in ("", caller.client_id):
            got_one = _member(entry.response, "code") is not None
            yield {"entry": entry, "prize": _member(entry.request, "prize"), "got_one": got_one}


def _member(text: bytes, name: str) -> Any:
    """Return a member of a JSON object that the journal recorded; `None` if it is absent."""
    try:
        value = msgspec.json.decode(text)
    except msgspec.DecodeError:
        return None
    return value.get(name) if isinstance(value, dict) else None


def masked(code: str) -> str:
    """Return a code whose characters are hidden, all but the first of a long one."""
    shown = code[:1] if len(code) >= 4 else ""
    return shown + "•" * (len(code) - len(shown))


SCREENS = (Screen("codes", "Codes", read),)
