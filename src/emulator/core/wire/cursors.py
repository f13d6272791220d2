"""Cursors of listings: the place where a page ended, for the call that reads the page after it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeVar

import msgspec

from emulator.core.wire.refusals import invalid_cursor

T = TypeVar("T")

FIRST: Final = "0"
"""The cursor of the first page. As the cursor of the next page it says that there is none."""


def cursor_of(place: bytes) -> str:
    """Return the cursor of the page after this place."""
    return place.hex()


def place_of(cursor: str, decode: Callable[[bytes], T]) -> T | None:
    """Return the place after which a page starts, decoded; `None` for the first page. Raises `BadRequest`."""
    if cursor in ("", FIRST):
        return None
    try:
        return decode(bytes.fromhex(cursor))
    except (ValueError, msgspec.MsgspecError):
        raise invalid_cursor(cursor) from None
