"""How large a blob may be, and how an entry is written. Pure."""

from __future__ import annotations

from msgspec import Raw, Struct

from emulator.clock import DAY
from emulator.errors import BadRequest
from emulator.wire import json_codec

LIFETIME = DAY
"""An entry lives this long (ruling R2)."""
LIMIT = 256
"""A blob has fewer bytes than this (ruling R3)."""


class Collected(Struct):
    """One entry of a buffer, as GET returns it."""

    observed: int
    channel_id: str
    opaque_id: str
    """Empty when `user_id` is known."""
    opaque_user_id: str
    """Always set."""
    user_id: str
    """Empty when the user did not share it."""
    data: Raw


def checked_blob(value: object) -> bytes:
    """The compact JSON of a blob; raises `BadRequest` from 256 bytes of UTF-8 on."""
    blob = json_codec.encode(value)
    if len(blob) >= LIMIT:
        raise BadRequest("Body too large", f"the body is {len(blob)} bytes as compact JSON; it must be under {LIMIT}")
    return blob
