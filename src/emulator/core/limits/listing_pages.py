"""Pages of a listing of polls, rankings or buffers, by channel and then by id."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple, Protocol

import msgspec

from emulator.core.keys import Key
from emulator.core.wire import json_codec
from emulator.core.wire.cursors import FIRST, cursor_of, place_of
from emulator.core.wire.refusals import invalid_parameter

MAX_PAGE: Final = 1_000
DEFAULT_PAGE: Final = 100
_decode: Final = msgspec.json.Decoder(tuple[str, str]).decode


class Listed(Protocol):
    """A record in a listing."""

    @property
    def key(self) -> Key: ...


class Page(NamedTuple):
    """The page that a call reads."""

    limit: int
    cursor: str
    """The `next` of the page before."""

    def after(self, group: Key) -> Key | None:
        """The key after which the page starts; `None` for the first page. Raises `BadRequest`."""
        place = place_of(self.cursor, _decode)
        return group._replace(channel=place[0], name=place[1]) if place else None

    def next(self, found: Sequence[Listed]) -> str:
        """The cursor of the page after this one. `found` has one record more than `limit` if there is such a page."""
        if len(found) <= self.limit:
            return FIRST
        last = found[self.limit - 1].key
        return cursor_of(json_codec.encode((last.channel, last.name)))


def checked_page(limit: int, cursor: str) -> Page:
    """Return a page of 1 to 1,000 records; raises `BadRequest` for another `limit`."""
    if not 1 <= limit <= MAX_PAGE:
        raise invalid_parameter("limit", limit, f"within 1 to {MAX_PAGE}")
    return Page(limit, cursor)
