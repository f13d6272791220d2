"""Pages of listings, and their cursors: the place where a page ended, for the call that reads the page after it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple, TypeVar

import msgspec

from emulator.core.keys import Key
from emulator.core.wire import json_codec
from emulator.core.wire.refusals import invalid_cursor, invalid_parameter

T = TypeVar("T")
R = TypeVar("R", bound=tuple[Any, ...])
Listing = Callable[..., Awaitable[list[R]]]

FIRST = "0"
"""The cursor of the first page. As the cursor of the next page it says that there is none."""
MAX_PAGE = 1_000
DEFAULT_PAGE = 100
_decode = msgspec.json.Decoder(tuple[str, str]).decode


def encode_cursor(place: bytes) -> str:
    """Return the cursor of the page after this place."""
    return place.hex()


def decode_cursor(cursor: str, decode: Callable[[bytes], T]) -> T | None:
    """Return the place after which a page starts, decoded; `None` for the first page. Raises `BadRequest`."""
    if cursor in ("", FIRST):
        return None
    try:
        return decode(bytes.fromhex(cursor))
    except (ValueError, msgspec.MsgspecError):
        raise invalid_cursor(cursor) from None


class Page(NamedTuple):
    """The page that a call reads."""

    limit: int
    cursor: str
    """The `next` of the page before."""

    async def read(self, listing: Listing[R], group: Key, *, now: int) -> tuple[list[R], str]:
        """Return the records of the page, and the cursor of the page after it. Raises `BadRequest`.

        `listing` lists the records of `group`, such as `Ballots.listing`. The first field of a record is its key.
        """
        place = decode_cursor(self.cursor, _decode)
        after = group._replace(channel=place[0], name=place[1]) if place else None
        found = await listing(group, now=now, limit=self.limit + 1, after=after)
        page = found[: self.limit]
        if len(found) == len(page):
            return page, FIRST
        last: Key = page[-1][0]
        return page, encode_cursor(json_codec.encode((last.channel, last.name)))


def page_request(limit: int, cursor: str) -> Page:
    """Return a page of 1 to 1,000 records; raises `BadRequest` for another `limit`."""
    if not 1 <= limit <= MAX_PAGE:
        raise invalid_parameter("limit", limit, f"within 1 to {MAX_PAGE}")
    return Page(limit, cursor)
