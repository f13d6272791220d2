"""`/_emulator/contents…`: what the service holds; `/_emulator/clock/next`: what expires next."""

from __future__ import annotations

from typing import Any, Final

from emulator.control.contents.rules import (
    DEFAULT_ROWS,
    FIRST,
    MAX_ROWS,
    ComingExpiries,
    ContentPage,
    Counts,
    Filter,
)
from emulator.control.contents.service import Contents
from emulator.http.call import Call
from emulator.http.endpoint import Audience, Endpoint, Parameter, endpoint

LISTS: Final = {
    "polls": "List the polls, with their votes.",
    "rankings": "List the rankings, with their answers.",
    "buffers": "List the buffers, with their entries.",
    "stores": "List the config and state stores, with their sizes.",
    "json_stores": "List the JSON stores, with their sizes.",
    "codes": "List the code sets, with the codes handed out. Never a code.",
    "pins": "List the live PINs, by a digest. Never a PIN.",
}
_LIMIT = Parameter("limit", f"At most this many, 1 to {MAX_ROWS}; {DEFAULT_ROWS} when absent.", "integer")
_PAGE = (
    Parameter("client_id", "The extension; all when absent."),
    Parameter("channel_id", "The channel; all when absent."),
    Parameter("search", "A text that the id, the channel or the user contains."),
    _LIMIT,
    Parameter("cursor", f"`{FIRST}` for the first page, then `next` of the previous page."),
)


@endpoint("GET", "/_emulator/contents", audience=Audience.CONTROL, answer=Counts)
async def count_contents(contents: Contents, call: Call) -> Counts:
    """Count what the service holds, by kind; 10,000 may mean more."""
    return await contents.counts()


@endpoint("GET", "/_emulator/clock/next", audience=Audience.CONTROL, query=(_LIMIT,), answer=ComingExpiries)
async def read_coming_expiries(contents: Contents, call: Call) -> ComingExpiries:
    """List the next things to expire, soonest first."""
    return await contents.upcoming(call.integer("limit", DEFAULT_ROWS))


def _listing(kind: str, summary: str) -> Endpoint[Contents]:
    async def read(contents: Contents, call: Call) -> ContentPage:
        only = Filter(call.text("client_id"), call.text("channel_id"), call.text("search"))
        return await contents.page(kind, only, limit=call.integer("limit", DEFAULT_ROWS), cursor=call.text("cursor"))

    read.__name__, read.__doc__ = f"list_all_{kind}", f"{summary} Of all extensions and channels."
    declare: Any = endpoint(
        "GET", f"/_emulator/contents/{kind}", audience=Audience.CONTROL, query=_PAGE, answer=ContentPage
    )
    declared: Endpoint[Contents] = declare(read)
    return declared


endpoints: Final = (count_contents, read_coming_expiries, *(_listing(*each) for each in LISTS.items()))
