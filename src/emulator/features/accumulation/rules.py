"""The limit and the stored entries of buffers, and how to check one that comes from outside. No I/O."""

from __future__ import annotations

from typing import Final

from msgspec import Raw, Struct

from emulator.engines.records import ItemRecord
from emulator.stored import VALUE, Stored, decoded, wrong

LIMIT: Final = 256
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


def _check_entry(record: ItemRecord) -> None:
    entry = decoded(record.value, BufferEntry, VALUE)
    if len(entry.data) >= LIMIT:
        raise wrong(VALUE, f"data: {len(entry.data)} bytes; the limit is {LIMIT - 1}")
    if entry.observed != record.at:
        raise wrong(VALUE, f"observed: {entry.observed} is not {record.at}, the time of the entry")


STORED: Final = (Stored(ItemRecord, "accumulate", _check_entry),)
