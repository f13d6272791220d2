"""The size limit of a blob, and the shape of an entry. Pure."""

from __future__ import annotations

from msgspec import Raw, Struct

from emulator.clock import DAY
from emulator.errors import BadRequest
from emulator.wire import json_codec

LIFETIME = DAY
"""An entry expires after this many ms (ruling R2)."""
LIMIT = 256
"""A blob must be under this many bytes (ruling R3)."""


class BufferEntry(Struct):
    """One entry of a buffer, as GET returns it."""

    observed: int
    channel_id: str
    opaque_id: str
    """Empty if `user_id` is set."""
    opaque_user_id: str
    """Always set."""
    user_id: str
    """Empty if the user does not share it."""
    data: Raw


def checked_blob(value: object) -> bytes:
    """The blob as compact JSON; raises `BadRequest` if it is 256 bytes of UTF-8 or more."""
    blob = json_codec.encode(value)
    if len(blob) >= LIMIT:
        raise BadRequest("Body too large", f"the body is {len(blob)} bytes as compact JSON; it must be under {LIMIT}")
    return blob
