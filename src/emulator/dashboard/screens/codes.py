"""Reward codes: sets, who may redeem and who has, and forms to upload, mark, redeem and delete. Codes are masked."""

from __future__ import annotations

from itertools import zip_longest
from typing import Any, Final, NamedTuple

from emulator.dashboard.callers import suggested, viewer_of
from emulator.dashboard.screen import Query, Screen, Service
from emulator.features.contents.rules import Filter

ROWS: Final = 200
_SHOWN: Final = 20
"""Redeemed codes of one set that are shown, masked."""


class Share(NamedTuple):
    """What one user has of a set."""

    set: int
    """The index of the set."""
    eligible: int
    """Codes that the user may still redeem."""
    redeemed: int
    masked: list[str]
    """The first redeemed codes, masked."""


async def read(service: Service, query: Query) -> dict[str, Any]:
    """Return the code sets of all extensions, and what one user has of them."""
    caller, user = suggested(service, query), query.get("user", "")
    client_id = query.get("client_id", "")
    found = await service.contents.page("codes", Filter(client_id), limit=ROWS)
    return {
        "rows": found.rows,
        "client_id": client_id,
        "caller": caller,
        "poll": query.get("poll") or "default",
        "user": user,
        "shares": await _shares(service, caller.client_id, caller.channel_id, user) if user else [],
    }


async def _shares(service: Service, client_id: str, channel_id: str, user: str) -> list[Share]:
    viewer = await viewer_of(service, client_id, channel_id, user)
    eligible = await service.code_sets.eligibility(viewer)
    redeemed = await service.code_sets.redeemed(viewer)
    pairs = enumerate(zip_longest(eligible, redeemed))
    return [
        Share(index, left or 0, len(codes or ()), [masked(code) for code in (codes or ())[:_SHOWN]])
        for index, (left, codes) in pairs
        if left or codes
    ]


def masked(code: str) -> str:
    """Return a code whose characters are hidden, all but the first of a long one."""
    shown = code[:1] if len(code) >= 4 else ""
    return shown + "•" * (len(code) - len(shown))


SCREEN = Screen("codes", "Codes", read)
