"""`/_emulator/contents…`: the stored data; `/_emulator/clock/next`: the next expiries."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from emulator.control.contents.rules import (
    DEFAULT_ROWS,
    MAX_ROWS,
    ComingExpiries,
    ContentPage,
    Filter,
)
from emulator.control.contents.service import Contents
from emulator.http.endpoint import CURSOR, Audience, Call, Endpoint, Parameter, endpoint
from emulator.kinds import Kind

_LIMIT = Parameter("limit", f"At most this many, 1 to {MAX_ROWS}; {DEFAULT_ROWS} when absent.", "integer")
_PAGE = (
    Parameter("client_id", "The extension; all when absent."),
    Parameter("channel_id", "The channel; all when absent."),
    Parameter("search", "A text that the id, the channel or the user contains."),
    _LIMIT,
    CURSOR,
)


@endpoint("GET", "/_emulator/clock/next", audience=Audience.CONTROL, query=(_LIMIT,), answer=ComingExpiries)
async def read_coming_expiries(contents: Contents, call: Call) -> ComingExpiries:
    """List the next records to expire, soonest first."""
    return await contents.upcoming(call.integer("limit", DEFAULT_ROWS))


def endpoints_of(kinds: Sequence[Kind]) -> tuple[Endpoint[Contents], ...]:
    """Return the endpoints about these kinds."""
    counts = msgspec.defstruct("Counts", [(kind.name, int) for kind in kinds])
    counts.__doc__ = "How many things of each kind the service holds; 10,000 may mean more."

    @endpoint("GET", "/_emulator/contents", audience=Audience.CONTROL, answer=counts)
    async def count_contents(contents: Contents, call: Call) -> Any:
        """Count the stored records by kind; 10,000 may mean more."""
        return await contents.counts()

    return (count_contents, read_coming_expiries, *map(_listing, kinds))


def _listing(kind: Kind) -> Endpoint[Contents]:
    async def read(contents: Contents, call: Call) -> ContentPage:
        only = Filter(call.text("client_id"), call.text("channel_id"), call.text("search"))
        return await contents.page(
            kind.name, only, limit=call.integer("limit", DEFAULT_ROWS), cursor=call.text("cursor")
        )

    read.__name__, read.__doc__ = f"list_all_{kind.name}", f"List {kind.about}. Of all extensions and channels."
    declare: Any = endpoint(
        "GET", f"/_emulator/contents/{kind.name}", audience=Audience.CONTROL, query=_PAGE, answer=ContentPage
    )
    declared: Endpoint[Contents] = declare(read)
    return declared
