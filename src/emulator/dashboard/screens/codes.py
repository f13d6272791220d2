"""Reward codes: sets, users with grants or codes, and forms to upload, mark, redeem and delete. Codes are masked."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice, zip_longest
from typing import Any

import msgspec

from emulator.contract.limits import MAX_SETS
from emulator.control.contents import ContentFilter
from emulator.core.wire.cursors import FIRST
from emulator.dashboard.screen import Query, Screen, Service, SuggestedPlace, suggested_place, viewer_of

MAX_ROWS = 200
_MAX_REDEMPTIONS = 50
"""Requests for a code that are shown."""
_MAX_ENTRIES_READ = 5_000
"""Entries of the journal that one view looks at."""
_MARK_PATH = "/v1/e/codes/mark_from_poll?id="
_REDEEM_ENDPOINT = "POST /v1/e/codes/redeem"
_MAX_SHOWN_CODES = 20
"""Redeemed codes of one set that are shown, masked."""


async def read(service: Service, query: Query) -> dict[str, Any]:
    """Return the code sets of all extensions, and one user's grants and codes."""
    client_id, user = query["client_id"], query["user"]
    found = await service.contents.page("codes", ContentFilter(client_id), limit=MAX_ROWS)
    place = suggested_place(service, query)
    polls = await service.contents.page("polls", ContentFilter(*place), limit=MAX_ROWS)
    poll_ids = [row.id for row in polls.rows] or ["default"]
    names = {row.id: f"{row.id}, {row.name}" for row in found.rows if row.client_id == place.client_id}
    return {
        "rows": found.rows,
        "is_whole": found.next == FIRST,
        "redemptions": list(islice(_redemptions(service, client_id), _MAX_REDEMPTIONS)),
        "sets": [(index, names.get(index, index)) for index in map(str, range(MAX_SETS))],
        "polls": [(f"{_MARK_PATH}{id}", id) for id in poll_ids],
        "shares": await _shares_of_user(service, place, user) if user else [],
    }


async def _shares_of_user(service: Service, place: SuggestedPlace, user: str) -> list[dict[str, Any]]:
    """Return the sets of which a user may redeem codes, or has redeemed some, with the first ones, masked."""
    viewer = await viewer_of(service, *place, user)
    eligible = await service.code_sets.eligibility(viewer)
    redeemed = await service.code_sets.redeemed_codes(viewer)
    shares = []
    for index, (left, codes) in enumerate(zip_longest(eligible, redeemed)):
        if left or codes:
            shown = [mask_code(code) for code in (codes or ())[:_MAX_SHOWN_CODES]]
            shares.append({"set": index, "eligible": left or 0, "redeemed": len(codes or ()), "masked": shown})
    return shares


def _redemptions(service: Service, client_id: str) -> Iterator[dict[str, Any]]:
    """Yield the latest requests for a code of an extension, or of all, newest first, each with the index of its set."""
    for entry in service.journal.newest(_MAX_ENTRIES_READ):
        caller = entry.caller
        if entry.name == _REDEEM_ENDPOINT and caller is not None and client_id in ("", caller.client_id):
            got_one = _json_member(entry.response, "code") is not None
            yield {"entry": entry, "prize": _json_member(entry.request, "prize"), "got_one": got_one}


def _json_member(text: bytes, name: str) -> Any:
    """Return a member of a JSON object that the journal recorded; `None` if it is absent."""
    try:
        value = msgspec.json.decode(text)
    except msgspec.DecodeError:
        return None
    return value.get(name) if isinstance(value, dict) else None


def mask_code(code: str) -> str:
    """Return a code whose characters are hidden, all but the first of a long one."""
    shown = code[:1] if len(code) >= 4 else ""
    return shown + "•" * (len(code) - len(shown))


SCREENS = (Screen("codes", "Codes", read),)
