"""The addresses of stored records, which every room names."""

from __future__ import annotations

from typing import NamedTuple

NEVER = (1 << 53) - 1
"""An `expires_at` that is never reached: the largest integer that JSON, Lua and scores in Redis hold exactly."""


class Key(NamedTuple):
    """The address of a record. An engine treats every part as opaque text."""

    kind: str
    """The kind of thing, such as a poll."""
    owner: str
    """The client id it belongs to; empty when all extensions share it."""
    name: str
    channel: str | None = ""
    """The channel; empty for none. `None`, where an operation allows it, means all channels together."""
    user: str = ""
    """The user it is about; empty for none."""


class Expired(NamedTuple):
    """One expired record."""

    key: Key
    at: int
    """When it expired; for a log, when the newest of the removed entries did."""
